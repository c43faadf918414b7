//! Roles: what each allows, and the users who have them. StackStorm's three own roles are `system_admin`, `admin` and
//! `observer`.

use std::collections::{BTreeMap, BTreeSet};

/// The roles and their assignments.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    /// Roles that files define, by name.
    pub(super) roles: BTreeMap<String, Role>,
    /// The names of each user's roles.
    pub(super) assignments: BTreeMap<String, Assignment>,
    /// Whether roles decide: there is an assignment, or a file that should have one.
    pub(super) is_enforced: bool,
}

/// A role that a file defines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Role {
    /// What it is for.
    pub(crate) description: String,
    /// What it allows.
    pub(crate) grants: Vec<Grant>,
}

/// The roles of a user.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assignment {
    /// Why.
    pub(crate) description: String,
    /// The names.
    pub(crate) roles: BTreeSet<String>,
    /// The file.
    pub(crate) file: String,
}

/// Permissions on one resource, or on all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grant {
    /// The resource's uid, such as `action:core:local`; `None` for permissions that have no resource.
    pub(crate) resource: Option<String>,
    /// The permissions.
    pub(crate) permissions: BTreeSet<String>,
}

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// Nothing in particular.
    All,
    /// A resource, and the pack it belongs to.
    One {
        /// Its uid.
        uid: String,
        /// The uid of its pack, if it belongs to one.
        pack: Option<String>,
    },
}

/// The roles that need no file.
pub(super) const SYSTEM_ROLES: [&str; 3] = ["system_admin", "admin", "observer"];

/// Names of permissions that an observer has.
const OBSERVED: [&str; 3] = ["view", "list", "search"];

/// The permission types of each resource type: the part after the type's name.
pub(crate) const PERMISSION_TYPES: &[(&str, &[&str])] = &[
    ("runner_type", &["list", "view", "modify", "all"]),
    (
        "pack",
        &[
            "list",
            "view",
            "create",
            "modify",
            "delete",
            "install",
            "uninstall",
            "register",
            "config",
            "search",
            "views_index_health",
            "all",
        ],
    ),
    ("sensor_type", &["list", "view", "modify", "all"]),
    ("action", &["list", "view", "create", "modify", "delete", "execute", "all"]),
    ("action_alias", &["list", "view", "create", "modify", "match", "help", "delete", "all"]),
    ("execution", &["list", "view", "rerun", "stop", "all", "views_filters_list"]),
    ("rule", &["list", "view", "create", "modify", "delete", "all"]),
    ("rule_enforcement", &["list", "view"]),
    ("key_value_pair", &["list", "view", "set", "delete", "all"]),
    ("webhook", &["list", "view", "create", "send", "delete", "all"]),
    ("timer", &["list", "view", "all"]),
    ("api_key", &["list", "view", "create", "modify", "delete", "all"]),
    ("trace", &["list", "view", "all"]),
    ("trigger", &["list", "view", "all"]),
    ("policy_type", &["list", "view", "all"]),
    ("policy", &["list", "view", "create", "modify", "delete", "all"]),
    ("stream", &["view"]),
    ("inquiry", &["list", "view", "respond", "all"]),
];

/// The resource type of a permission type, and the part after it.
pub fn split_permission(permission: &str) -> Option<(&'static str, &'static str)> {
    PERMISSION_TYPES.iter().find_map(|(kind, names)| {
        let rest = permission.strip_prefix(kind)?.strip_prefix('_')?;
        Some((*kind, *names.iter().find(|name| **name == rest)?))
    })
}

impl Resource {
    /// A resource of a pack, such as an action.
    pub fn of_pack(kind: &str, pack: &str, name: &str) -> Resource {
        Resource::One { uid: format!("{kind}:{pack}:{name}"), pack: Some(format!("pack:{pack}")) }
    }

    /// A resource without a pack.
    pub(crate) fn single(kind: &str, name: &str) -> Resource {
        Resource::One { uid: format!("{kind}:{name}"), pack: None }
    }
}

impl Roles {
    /// Whether roles decide. Without an assignment, operators of the broker may do everything.
    pub fn is_enforced(&self) -> bool {
        self.is_enforced
    }

    /// The roles that files define, by name.
    pub(crate) fn roles(&self) -> &BTreeMap<String, Role> {
        &self.roles
    }

    /// The assignments, by user.
    pub(crate) fn assignments(&self) -> &BTreeMap<String, Assignment> {
        &self.assignments
    }

    /// Whether a user has some role.
    pub fn knows(&self, user: &str) -> bool {
        self.assignments.get(user).is_some_and(|assignment| !assignment.roles.is_empty())
    }

    /// Whether a user may do everything.
    pub(crate) fn is_admin(&self, user: &str) -> bool {
        self.has_role(user, "admin") || self.has_role(user, "system_admin")
    }

    fn has_role(&self, user: &str, role: &str) -> bool {
        self.assignments.get(user).is_some_and(|assignment| assignment.roles.contains(role))
    }

    /// Whether a user's roles have a permission on a resource.
    pub fn allows(&self, user: &str, permission: &str, resource: &Resource) -> bool {
        if self.is_admin(user) {
            return true;
        }
        let Some((kind, name)) = split_permission(permission) else { return false };
        let last = name.rsplit('_').next().unwrap_or(name);
        if self.has_role(user, "observer") && OBSERVED.contains(&last) {
            return true;
        }
        let Some(assignment) = self.assignments.get(user) else { return false };
        let grants = assignment.roles.iter().filter_map(|role| self.roles.get(role));
        grants.flat_map(|role| &role.grants).any(|grant| {
            let covers = match resource {
                Resource::All => true,
                Resource::One { uid, pack } => {
                    let granted = grant.resource.as_ref();
                    granted == Some(uid) || (pack.is_some() && granted == pack.as_ref())
                }
            };
            covers && grant.permissions.iter().any(|granted| implies(granted, kind, name))
        })
    }
}

/// Whether a granted permission implies one on the same kind of resource.
fn implies(granted: &str, kind: &str, name: &str) -> bool {
    match split_permission(granted) {
        Some((of, granted)) if of == kind => {
            let sees = name == "view" && !matches!(granted, "list" | "match" | "help" | "send");
            granted == name || (granted == "all" && name != "list") || sees
        }
        _ => false,
    }
}
