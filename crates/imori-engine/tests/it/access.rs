//! Requesters, the permission that each request needs, and what roles allow.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use imori_engine::for_tests::{
    Login, Need, Permission, Requester, Resource, Roles, api_rows, decoded_path, query_pairs, requester,
    split_permission, with_requester,
};

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
fn each_row_names_a_permission_that_exists() {
    for (method, path, need) in api_rows() {
        let is_known = match need.permission {
            Permission::Type(name) => split_permission(name).is_some(),
            Permission::Any | Permission::Administrator => true,
        };
        assert!(is_known, "{method} {path} needs {}", need.permission);
    }
}

#[test]
fn only_webhooks_are_open_to_signatures_and_only_tokens_are_made_by_password() {
    for (method, path, need) in api_rows() {
        let expected = match (method.as_str(), path.as_str()) {
            (_, "/api/v1/webhooks/{*url}") => Login::OrSignature,
            ("POST", "/auth/v1/tokens") => Login::Password,
            // Tokens and keys are in the store that is not trusted yet.
            ("POST", "/api/v1/imori/store/adopt") => Login::PasswordOnly,
            _ => Login::Needed,
        };
        assert_eq!(need.login, expected, "{method} {path}");
    }
}

const BEGIN: &str = "<!-- The table of the automation is written by a test; do not edit it. -->\n\n";
const END: &str = "\n<!-- The end of the table of the automation. -->";

#[test]
fn the_page_on_rights_has_the_table_of_the_api() {
    let mut table = String::from(
        "| method | path | login | permission | on | largest body | audited |\n|---|---|---|---|---|---|---|\n",
    );
    for (method, path, need) in api_rows() {
        let Need { login, permission, target, body_bytes_max, is_change, .. } = need;
        let (body, audited) = (body_bytes_max >> 20, if is_change { "yes" } else { "refusals" });
        writeln!(
            table,
            "| {method} | `{path}` | {login} | {permission} | {target} | {body} MiB | {audited} |"
        )
        .unwrap();
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/rights.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (written, after) = rest.split_once(END).unwrap();
    if env::var_os("IMORI_BLESS").is_some() {
        fs::write(page, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(
        written == table,
        "the page is stale; run `IMORI_BLESS=1 cargo test -p imori-engine --test it table_of_the_api`"
    );
}

#[test]
fn queries_are_read_as_by_the_router() {
    for (text, expected) in [("core%2Elocal", "core.local"), ("a%2", "a%2"), ("%zz%C3%A9", "%zzé"), ("", "")]
    {
        assert_eq!(decoded_path(text), expected);
    }
    let expected = [("user", "a b"), ("decrypt", "true"), ("x", "")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(query_pairs("user=a+b&decrypt=true&x"), expected);
}
