//! Reads roles and their assignments from `roles/*.yaml` and `assignments/*.yaml` of a folder.

use std::collections::BTreeSet;
use std::path::Path;

use imori_automation::value::Value;

use super::roles::{Assignment, Grant, Role, Roles, SYSTEM_ROLES, split_permission};
use crate::limits::ROLE_FILES_MAX;
use crate::packs::document::{Document, PackProblem, Read, read_document};
use crate::packs::fields::Fields;

/// Kinds of resources that belong to a pack, on which permissions can be granted by the pack.
const OF_PACKS: [&str; 5] = ["pack", "sensor_type", "action", "action_alias", "rule"];

/// Permissions that have no resource besides those named `list`.
const WITHOUT_RESOURCE: [&str; 13] = [
    "pack_install",
    "pack_uninstall",
    "pack_create",
    "pack_register",
    "pack_config",
    "pack_search",
    "pack_views_index_health",
    "execution_views_filters_list",
    "stream_view",
    "inquiry_respond",
    "inquiry_view",
    "action_alias_match",
    "action_alias_help",
];

impl Roles {
    /// Reads a folder. What is wrong is left out and returned: a user whose file is wrong has no role.
    pub fn read(folder: &Path) -> (Roles, Vec<PackProblem>) {
        let (mut roles, mut problems) = (Roles::default(), Vec::new());
        for file in files(folder, "roles", &mut problems) {
            match read_document(folder, &file).map_err(|problem| vec![problem]).and_then(|it| role(&it)) {
                Ok((Some((name, _)), _)) if roles.roles.contains_key(&name) => {
                    problems
                        .push(PackProblem::of(file, format!("role `{name}` is defined twice; remove one")));
                }
                Ok((role, warnings)) => {
                    roles.roles.extend(role);
                    problems.extend(warnings);
                }
                Err(found) => problems.extend(found),
            }
        }
        for file in files(folder, "assignments", &mut problems) {
            // A file that is wrong may not give its user, or everyone, more than was meant.
            roles.is_enforced = true;
            let read = read_document(folder, &file).map_err(|problem| vec![problem]);
            match read.and_then(|document| assignment(&document, &roles)) {
                Ok((Some((user, _)), _)) if roles.assignments.contains_key(&user) => {
                    problems
                        .push(PackProblem::of(file, format!("user `{user}` is assigned twice; remove one")));
                }
                Ok((assignment, warnings)) => {
                    roles.assignments.extend(assignment);
                    problems.extend(warnings);
                }
                Err(found) => problems.extend(found),
            }
        }
        (roles, problems)
    }
}

/// The YAML files of a folder below this one, sorted.
fn files(folder: &Path, below: &str, problems: &mut Vec<PackProblem>) -> Vec<String> {
    let Ok(entries) = folder.join(below).read_dir() else { return Vec::new() };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".yaml")).map(|name| format!("{below}/{name}")).collect();
    names.sort_unstable();
    if names.len() > ROLE_FILES_MAX {
        problems.push(PackProblem::of(below, format!("has more than {ROLE_FILES_MAX} files")));
        names.truncate(ROLE_FILES_MAX);
    }
    names
}

fn role(document: &Document) -> Read<Option<(String, Role)>> {
    let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
    fields.only(&["name", "description", "enabled", "permission_grants"]);
    let name = fields.required_text("name");
    if SYSTEM_ROLES.contains(&name.as_str()) {
        fields.complain(&["name"], format!("role `{name}` is built in; use another name"));
    }
    let is_enabled = fields.flag("enabled", true);
    let mut role = Role { description: fields.text("description").unwrap_or_default(), grants: Vec::new() };
    for (index, grant) in fields.maps("permission_grants").iter().enumerate() {
        let index = index.to_string();
        let resource = grant.get("resource_uid").and_then(Value::as_str).map(str::to_owned);
        let mut permissions = BTreeSet::new();
        for permission in grant.get("permission_types").and_then(Value::as_list).unwrap_or_default() {
            match check(permission.as_str().unwrap_or_default(), resource.as_deref()) {
                Ok(permission) => drop(permissions.insert(permission)),
                Err(reason) => fields.complain(&["permission_grants", &index, "permission_types"], reason),
            }
        }
        role.grants.push(Grant { resource, permissions });
    }
    fields.read(is_enabled.then_some((name, role)))
}

/// Checks that a permission can be granted on a resource.
fn check(permission: &str, resource: Option<&str>) -> Result<String, String> {
    let (kind, name) = split_permission(permission).ok_or_else(|| {
        format!("permission type `{permission}` is unknown; see `/v1/rbac/permission_types`")
    })?;
    let Some(resource) = resource else {
        let is_global = name == "list" || WITHOUT_RESOURCE.contains(&permission) || !OF_PACKS.contains(&kind);
        return match is_global {
            true => Ok(permission.to_owned()),
            false => Err(format!("permission type `{permission}` needs a `resource_uid`")),
        };
    };
    let of = resource.split(':').next().unwrap_or_default();
    match of == kind || (of == "pack" && OF_PACKS.contains(&kind)) {
        true => Ok(permission.to_owned()),
        false => Err(format!("permission type `{permission}` cannot be granted on `{resource}`")),
    }
}

fn assignment(document: &Document, roles: &Roles) -> Read<Option<(String, Assignment)>> {
    let mut fields = Fields::of(document).map_err(|problem| vec![problem])?;
    fields.only(&["username", "description", "enabled", "roles"]);
    let user = fields.required_text("username");
    let is_enabled = fields.flag("enabled", true);
    let names = fields.texts("roles");
    for name in &names {
        if !roles.roles.contains_key(name) && !SYSTEM_ROLES.contains(&name.as_str()) {
            fields.complain(&["roles"], format!("role `{name}` is not defined; add it to `roles`"));
        }
    }
    let assignment = Assignment {
        description: fields.text("description").unwrap_or_default(),
        roles: names.into_iter().collect(),
        file: document.file().to_owned(),
    };
    fields.read(is_enabled.then_some((user, assignment)))
}
