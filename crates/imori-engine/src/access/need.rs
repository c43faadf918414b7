//! What an endpoint of the API needs: a login, a permission, and the resource that the permission is on.

use std::fmt;

/// What an endpoint needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// What a caller proves who it is by.
    pub login: Login,
    /// Who may, where roles decide.
    pub permission: Permission,
    /// The resource.
    pub target: Target,
    /// Whether a request that succeeds has changed something, which leaves a line in the audit log.
    pub is_change: bool,
    /// The most bytes of its body.
    pub body_bytes_max: usize,
    /// Whether its body may say that it is something else than JSON: it changes nothing, so that a page of another origin
    /// gains nothing by it.
    pub takes_text: bool,
    /// Whether it is there while the automation cannot use its store.
    pub is_for_recovery: bool,
}

/// What a caller proves who it is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// A password, a token or an API key.
    Needed,
    /// The same; if a request has a password, that counts alone.
    Password,
    /// A password, and neither a token nor an API key.
    PasswordOnly,
    /// A password, a token or an API key; or the signature of the webhook in the path, if its rules check one.
    OrSignature,
}

/// Who may, where roles decide. Without roles, only operators use the automation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Any user with a role.
    Any,
    /// A user whose roles have a permission of this type.
    Type(&'static str),
    /// An administrator.
    Administrator,
}

/// How a request names its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// It has none.
    Nothing,
    /// A registered object, by the reference or id in the path.
    Named,
    /// The object in the body, by its pack and name.
    Body,
    /// The action that the body names.
    BodyAction,
    /// The action of the execution whose id is in the path.
    Execution,
    /// The action of the alias that the body names.
    Alias,
    /// The action of the alias that the body's command matches.
    Command,
    /// A key of the datastore.
    Key,
    /// An address of a webhook.
    Webhook,
}

impl Permission {
    /// The type of the permission; `None` if it has none.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Permission::Type(name) => Some(name),
            Permission::Any | Permission::Administrator => None,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Permission::Any => f.write_str("none"),
            Permission::Type(name) => write!(f, "`{name}`"),
            Permission::Administrator => f.write_str("role `admin`"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Nothing => "",
            Target::Named => "the object in the path",
            Target::Body => "the object in the body",
            Target::BodyAction => "the action in the body",
            Target::Execution => "the execution's action",
            Target::Alias | Target::Command => "the alias's action",
            Target::Key => "the key",
            Target::Webhook => "the webhook",
        })
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Login::Needed => "needed",
            Login::Password => "needed; a password counts alone",
            Login::PasswordOnly => "a password alone",
            Login::OrSignature => "needed, or the webhook's signature",
        })
    }
}
