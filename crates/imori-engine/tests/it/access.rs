//! Requesters, the permission that each request needs, and what roles allow.

use std::fs;
use std::path::Path;

use imori_engine::for_tests::{
    Need, PERMISSIONS, Requester, Resource, Roles, decoded_path, need, path_below_version, query_pairs,
    requester, split_permission, with_requester,
};

/// The router is built from these texts.
const ROUTES: &str = include_str!("../../src/api/routes.rs");

/// Writes a file of roles or assignments below `folder`.
fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn resource(uid: &str) -> Resource {
    match uid.split(':').collect::<Vec<_>>().as_slice() {
        [kind, pack, name] => Resource::of_pack(kind, pack, name),
        _ => Resource::One { uid: uid.to_owned(), pack: None },
    }
}

#[test]
fn roles_are_read_from_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| write(folder.path(), file, text);
    assert!(!Roles::read(folder.path()).0.is_enforced());
    write(
        "roles/deploy.yaml",
        "name: deploy\npermission_grants:\n  - resource_uid: pack:deploy\n    permission_types: [action_execute]\n",
    );
    write("assignments/ann.yaml", "username: ann\nroles: [deploy, observer]\n");
    write("assignments/old.yaml", "username: old\nenabled: false\nroles: [admin]\n");
    let (roles, problems) = Roles::read(folder.path());
    assert_eq!(problems, []);
    assert!(roles.is_enforced() && roles.knows("ann") && !roles.knows("old"));
    assert!(roles.allows("ann", "action_execute", &resource("action:deploy:web")));
    assert!(!roles.allows("ann", "action_execute", &resource("action:core:local")));
    write("roles/bad.yaml", "name: bad\npermission_grants:\n  - permission_types: [action_execute, fly]\n");
    write("assignments/bob.yaml", "username: bob\nroles: [bad]\n");
    let (roles, problems) = Roles::read(folder.path());
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "roles/bad.yaml:3: permission type `action_execute` needs a `resource_uid`",
            "roles/bad.yaml:3: permission type `fly` is unknown; see `/v1/rbac/permission_types`",
            "assignments/bob.yaml:2: role `bad` is not defined; add it to `roles`",
        ]
    );
    assert!(roles.knows("ann") && !roles.knows("bob"));
}

fn roles(folder: &Path) -> Roles {
    write(
        folder,
        "roles/own.yaml",
        "name: own\npermission_grants:\n  - resource_uid: action:core:local\n    permission_types: [action_execute]\n  - resource_uid: pack:examples\n    permission_types: [rule_all, action_view]\n  - permission_types: [action_list]\n",
    );
    for (user, role) in [("root", "system_admin"), ("boss", "admin"), ("eye", "observer"), ("hand", "own")] {
        write(folder, &format!("assignments/{user}.yaml"), &format!("username: {user}\nroles: [{role}]\n"));
    }
    let (roles, problems) = Roles::read(folder);
    assert_eq!(problems, []);
    roles
}

#[test]
fn roles_allow_what_stackstorms_allow() {
    let folder = tempfile::tempdir().unwrap();
    let roles = roles(folder.path());
    let local = Resource::of_pack("action", "core", "local");
    let other = Resource::of_pack("action", "core", "http");
    let rule = Resource::of_pack("rule", "examples", "r");
    let example = Resource::of_pack("action", "examples", "a");
    let all = Resource::All;
    for (permission, resource, allowed) in [
        ("action_execute", &local, "root boss hand"),
        ("action_view", &local, "root boss eye hand"),
        ("action_modify", &local, "root boss"),
        ("action_execute", &other, "root boss"),
        ("action_view", &other, "root boss eye"),
        ("action_view", &example, "root boss eye hand"),
        ("action_execute", &example, "root boss"),
        ("rule_create", &rule, "root boss hand"),
        ("rule_view", &rule, "root boss eye hand"),
        ("rule_list", &all, "root boss eye"),
        ("action_list", &all, "root boss eye hand"),
        ("pack_search", &all, "root boss eye"),
        ("pack_install", &all, "root boss"),
        ("execution_views_filters_list", &all, "root boss eye"),
        ("no_such_permission", &all, "root boss"),
    ] {
        let found: Vec<&str> = ["root", "boss", "eye", "hand", "nobody"]
            .into_iter()
            .filter(|user| roles.allows(user, permission, resource))
            .collect();
        assert_eq!(found.join(" "), allowed, "{permission} on {resource:?}");
    }
}

#[tokio::test]
async fn a_request_knows_its_user() {
    assert_eq!(requester(), None);
    let alice = Requester::named("alice").unwrap();
    assert_eq!(with_requester(alice, async { requester() }).await, Some(alice));
    assert!(std::ptr::eq(Requester::named("alice").unwrap().name, alice.name));
}

#[test]
fn each_permission_exists_and_each_path_has_its_row() {
    for (method, path, permission, target) in PERMISSIONS {
        let is_known = permission.is_empty() || split_permission(permission).is_some();
        assert!(is_known, "{method} {path} needs {permission}");
        // A row that an earlier one hides would never count.
        assert_eq!(need(method, path), Need { permission, target: *target }, "{method} {path}");
    }
}

#[test]
fn what_has_no_row_is_for_administrators() {
    for (method, path) in [
        ("POST", "/triggertypes"),
        ("GET", "/rbac/roles"),
        ("POST", "/rbac/reload"),
        ("GET", "/service_registry/groups"),
        ("PATCH", "/actions"),
        ("GET", "/actions/"),
        ("GET", "/keys/"),
        ("GET", "/nothing"),
        ("POST", "/triggerinstances/a/re_emit"),
    ] {
        assert_eq!(need(method, path).permission, "admin", "{method} {path}");
    }
}

#[test]
fn each_route_needs_a_permission_or_an_administrator() {
    let for_administrators = [
        "/triggertypes",
        "/triggertypes/{ref}",
        "/triggerinstances/{id}/re_emit",
        "/service_registry/groups",
        "/service_registry/groups/{id}/members",
        "/rbac/permission_types",
        "/rbac/permission_types/{type}",
        "/rbac/roles",
        "/rbac/roles/{name}",
        "/rbac/role_assignments",
        "/rbac/role_assignments/{id}",
        "/rbac/reload",
    ];
    for line in ROUTES.lines().filter(|line| line.contains(".route(\"")) {
        let path = line.split('"').nth(1).unwrap();
        for (verb, method) in [("get(", "GET"), ("post(", "POST"), ("put(", "PUT"), ("delete(", "DELETE")] {
            let is_routed = line.contains(&format!(" {verb}")) || line.contains(&format!(").{verb}"));
            if is_routed && need(method, path).permission == "admin" {
                assert!(for_administrators.contains(&path), "{method} {path} has no row");
            }
        }
    }
}

#[test]
fn paths_and_queries_are_read_as_by_the_router() {
    for (path, below) in [("/api/v1/actions", "/actions"), ("/v1/keys/a%2Fb", "/keys/a%2Fb"), ("/x", "/x")] {
        assert_eq!(path_below_version(path), below);
    }
    for (text, expected) in [("core%2Elocal", "core.local"), ("a%2", "a%2"), ("%zz%C3%A9", "%zzé"), ("", "")]
    {
        assert_eq!(decoded_path(text), expected);
    }
    let expected = [("user", "a b"), ("decrypt", "true"), ("x", "")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(query_pairs("user=a+b&decrypt=true&x"), expected);
}
