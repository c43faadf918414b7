//! Why something is not allowed.

use std::fmt;

use super::action::{Action, Object};
use crate::name::{Name, Printable};

/// The three rights to queues and exchanges, as in RabbitMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// To declare and delete.
    Configure,
    /// To send messages to.
    Write,
    /// To receive messages from.
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

/// Why something is not allowed.
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
    /// The name is one that clients do not give.
    Reserved,
    /// The user may not enter the vhost, or has no tag that allows it.
    Outside,
}

/// A thing that rights are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A queue.
    Queue(Name),
    /// An exchange.
    Exchange(Name),
}

impl Refusal {
    /// The user lacks the right to the object.
    #[cold]
    pub(super) fn access(user: &Name, access: Access, action: Action, object: Object<'_>) -> Refusal {
        let cause = match object {
            Object::Queue(name) => Cause::Access(access, Resource::Queue(Name::new(name))),
            Object::Exchange { exchange, .. } => {
                Cause::Access(access, Resource::Exchange(Name::new(shown(exchange))))
            }
            Object::Inbox => Cause::Access(access, Resource::Exchange(Name::new(shown(b"")))),
            Object::Broker | Object::Vhost => Cause::Outside,
        };
        let reason = format!("user `{user}` may not {action} {object}; ask for the right to {access} it");
        Refusal { user: user.clone(), reason, cause }
    }

    /// The user is not in the vhost, or has not the tag.
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

    /// The rule that refused, for a protocol that has words of its own for it.
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

/// The name of an exchange as rights and refusals have it: the default one has a name there.
#[inline]
pub(super) fn shown(exchange: &[u8]) -> &[u8] {
    if exchange.is_empty() { b"amq.default" } else { exchange }
}
