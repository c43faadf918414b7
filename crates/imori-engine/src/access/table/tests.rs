use super::super::roles::split_permission;
use super::*;

#[test]
fn each_permission_exists_and_each_path_has_its_row() {
    for (method, path, permission, target) in ROWS {
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

/// The router is built from these texts.
const ROUTES: &str = include_str!("../../api/routes.rs");

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
