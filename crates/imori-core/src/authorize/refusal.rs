//! Refusals: the reason why an action is not allowed.

use std::fmt;

use super::action::{Action, Object};
use super::rights::DEFAULT_NAME;
use crate::name::{Name, Printable};

/// The three rights to queues and exchanges, as in RabbitMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// To declare and delete an object.
    Configure,
    /// To send messages to it.
    Write,
    /// To receive messages from it.
    Read,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Configure => "configure",
            Access::Write => "write",
            Access::Read => "read",
        })
    }
}

/// The reason why an action is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    user: Name,
    reason: String,
    cause: Cause,
}

/// The rule that refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The user lacks a right to a queue or an exchange.
    Access(Access, Resource),
    /// The name is reserved for the broker.
    Reserved,
    /// The user may not enter the vhost, or lacks the necessary tag.
    Outside,
}

/// An object to which rights apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A queue, by the name that the client gave.
    Queue(Name),
    /// An exchange, by the name that the client gave.
    Exchange(Name),
    /// A routing key, subject or pattern of an exchange.
    Topic {
        /// The exchange that the user may use, though not with this key.
        exchange: Name,
        /// The routing key, subject or pattern that the client gave.
        key: Name,
    },
}

impl Refusal {
    /// The user lacks the right to the object, or, with `is_key`, to the key in the exchange.
    #[cold]
    pub(super) fn access(
        user: &Name,
        (access, is_key): (Access, bool),
        action: Action,
        object: Object<'_>,
    ) -> Refusal {
        let exchange = |name| Resource::Exchange(Name::new(shown(name)));
        let topic = |exchange, key| Resource::Topic { exchange: Name::new(shown(exchange)), key };
        let resource = match object {
            Object::Queue(name) => Resource::Queue(Name::new(name)),
            Object::Subject { exchange, subject, .. } if is_key => topic(exchange, Name::new(subject)),
            Object::Pattern { exchange, key, .. } if is_key => topic(exchange, key.text.clone()),
            Object::Exchange(name)
            | Object::Subject { exchange: name, .. }
            | Object::Pattern { exchange: name, .. } => exchange(name),
            Object::Inbox => exchange(b""),
            Object::Broker | Object::Vhost => return Refusal::outside(user, action, object),
        };
        let reason = format!("user `{user}` may not {action} {object}; ask for the right to {access} it");
        Refusal { user: user.clone(), reason, cause: Cause::Access(access, resource) }
    }

    /// The user may not enter the vhost, or lacks the tag.
    #[cold]
    pub(super) fn outside(user: &Name, action: Action, object: Object<'_>) -> Refusal {
        let reason = format!("user `{user}` may not {action} {object}; ask for the right to");
        Refusal { user: user.clone(), reason, cause: Cause::Outside }
    }

    /// The name is reserved.
    #[cold]
    pub(super) fn reserved(user: &Name, name: &[u8]) -> Refusal {
        let reason = format!(
            "the name `{}` begins with a reserved prefix; choose one that does not begin with `amq.` or `imori.`",
            Printable(name)
        );
        Refusal { user: user.clone(), reason, cause: Cause::Reserved }
    }

    /// The user who was refused.
    pub fn user(&self) -> &Name {
        &self.user
    }

    /// The rule that refused, for protocols with their own wording.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// The name of an exchange in rights and refusals, where the default exchange has one.
#[inline]
fn shown(exchange: &[u8]) -> &[u8] {
    if exchange.is_empty() { DEFAULT_NAME } else { exchange }
}
