//! Decides who may do what; nothing else in the broker does.

use std::fmt;

use crate::id::{ConnectionId, VhostId};
use crate::name::{Name, Printable};

/// The user that a connection speaks for, with the rules for that user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The user's name.
    pub user: Name,
    /// Which rules apply.
    pub policy: Policy,
}

/// A set of rules. Until users are configured there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// All messaging in every vhost, no administration.
    Guest,
    /// Nothing at all.
    Nobody,
}

impl Identity {
    /// The identity in which the broker's own services act.
    pub fn broker() -> Identity {
        Identity { user: Name::from("imori"), policy: Policy::Guest }
    }

    /// The identity of `guest`, which comes from loopback addresses only.
    pub fn guest() -> Identity {
        Identity { user: Name::from("guest"), policy: Policy::Guest }
    }
}

/// Somebody on whose behalf the broker does something.
#[derive(Debug, Clone, Copy)]
pub struct Actor<'a> {
    /// The name they go by, and their rights.
    pub identity: &'a Identity,
    /// Their connection.
    pub connection: ConnectionId,
    /// The vhost they are in.
    pub vhost: VhostId,
}

/// An action of a client that needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Enter a vhost.
    Enter,
    /// Publish to an exchange with a subject.
    Publish,
    /// Answer to an inbox.
    Reply,
    /// Have an inbox.
    Receive,
    /// Read from a queue.
    Consume,
    /// Read what is published to an exchange with subjects that match a pattern.
    Subscribe,
    /// Bind a queue or an exchange to an exchange, or unbind it.
    Bind,
    /// Declare a queue or an exchange.
    Declare,
    /// Declare a queue under a name that the broker makes.
    DeclareUnnamed,
    /// Delete a queue or an exchange.
    Delete,
    /// Drop what waits in a queue.
    Purge,
    /// Ask whether a queue or an exchange is there, and what it has.
    Inspect,
    /// Accept, release or reject.
    Settle,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Enter => "enter",
            Action::Publish => "publish to",
            Action::Reply => "reply to",
            Action::Receive => "receive replies at",
            Action::Consume => "consume from",
            Action::Subscribe => "subscribe to",
            Action::Bind => "bind",
            Action::Declare => "declare",
            Action::DeclareUnnamed => "leave to the broker the name of",
            Action::Delete => "delete",
            Action::Purge => "purge",
            Action::Inspect => "inspect",
            Action::Settle => "settle deliveries of",
        })
    }
}

/// The object of an action.
#[derive(Debug, Clone, Copy)]
pub enum Object<'a> {
    /// A vhost as a whole.
    Vhost,
    /// A subject or a pattern in an exchange.
    Exchange {
        /// The exchange.
        exchange: &'a [u8],
        /// The subject or pattern.
        subject: &'a [u8],
    },
    /// A queue.
    Queue(&'a [u8]),
    /// An inbox.
    Inbox,
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Vhost => f.write_str("this vhost"),
            Object::Exchange { exchange, subject } => {
                write!(f, "exchange `{}` with `{}`", Printable(exchange), Printable(subject))
            }
            Object::Queue(queue) => write!(f, "queue `{}`", Printable(queue)),
            Object::Inbox => f.write_str("an inbox"),
        }
    }
}

/// Why it is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Refusal {}

/// Names that clients do not give to things of their own (SECURITY AUTH-05).
const RESERVED: [&[u8]; 2] = [b"amq.", b"imori."];

/// Decides whether `identity` may do `action` to `object` in `vhost`. Every way into the broker and
/// out of it passes here.
///
/// # Errors
/// The reason, in words for the client.
#[inline]
pub fn authorize(
    identity: &Identity,
    action: Action,
    vhost: VhostId,
    object: Object<'_>,
) -> Result<(), Refusal> {
    match (identity.policy, action) {
        (Policy::Nobody, _) => Err(refuse(identity, action, vhost, object)),
        (Policy::Guest, Action::Declare | Action::Delete) => match object {
            // A queue with such a name is one that the broker named for a client, who may delete it.
            Object::Queue(_) if action == Action::Delete => Ok(()),
            Object::Queue(name) | Object::Exchange { exchange: name, .. } if is_reserved(name) => {
                Err(reserved(name))
            }
            _ => Ok(()),
        },
        (Policy::Guest, _) => Ok(()),
    }
}

fn is_reserved(name: &[u8]) -> bool {
    RESERVED.iter().any(|prefix| name.starts_with(prefix))
}

#[cold]
fn reserved(name: &[u8]) -> Refusal {
    let reason = format!(
        "the name `{}` begins with a reserved prefix; choose one that does not begin with `amq.` or `imori.`",
        Printable(name)
    );
    Refusal { reason }
}

#[cold]
fn refuse(identity: &Identity, action: Action, _: VhostId, object: Object<'_>) -> Refusal {
    Refusal { reason: format!("user `{}` may not {action} {object}; ask for the right to", identity.user) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_sends_and_reads_but_takes_no_reserved_name() {
        let vhost = VhostId(0);
        let guest = Identity::guest();
        for (action, object, allowed) in [
            (Action::Publish, Object::Exchange { exchange: b"amq.topic", subject: b"a" }, true),
            (Action::Consume, Object::Queue(b"orders"), true),
            (Action::Declare, Object::Queue(b"orders"), true),
            (Action::Declare, Object::Queue(b"amq.gen-1"), false),
            (Action::DeclareUnnamed, Object::Queue(b"amq.gen-1"), true),
            (Action::Delete, Object::Queue(b"amq.gen-1"), true),
            (Action::Delete, Object::Exchange { exchange: b"amq.topic", subject: b"" }, false),
            (Action::Declare, Object::Queue(b"imori.inbox.x"), false),
        ] {
            assert_eq!(authorize(&guest, action, vhost, object).is_ok(), allowed, "{action} {object}");
        }
    }

    #[test]
    fn nobody_may_do_anything() {
        let nobody = Identity { user: Name::from("eve"), policy: Policy::Nobody };
        let refusal = authorize(&nobody, Action::Consume, VhostId(0), Object::Queue(b"q")).unwrap_err();
        assert_eq!(refusal.to_string(), "user `eve` may not consume from queue `q`; ask for the right to");
    }
}
