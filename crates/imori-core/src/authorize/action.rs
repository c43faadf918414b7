//! Actions of clients, and the objects they act on.

use std::fmt;

use crate::name::Printable;
use crate::route::BindingKey;

/// An action that needs a right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Enter a vhost.
    Enter,
    /// Publish a subject to an exchange.
    Publish,
    /// Send a reply to an inbox.
    Reply,
    /// Publish an answer to a message that the client received.
    Answer,
    /// Own an inbox.
    Receive,
    /// Read from a queue.
    Consume,
    /// Read messages published to an exchange with subjects that match a pattern.
    Subscribe,
    /// Bind or unbind a queue or an exchange as the destination of a binding.
    Bind,
    /// Bind or unbind an exchange as the source of a binding.
    BindTo,
    /// Make an exchange the target of dead letters or unroutable messages, with any subject.
    Forward,
    /// Have dead letters or unroutable messages of a queue or an exchange forwarded.
    ForwardFrom,
    /// Declare a queue or an exchange, whether or not it exists.
    Declare,
    /// Declare a queue under a name that the broker generates.
    DeclareUnnamed,
    /// Create a queue or an exchange that does not exist.
    Create,
    /// Delete a queue or an exchange.
    Delete,
    /// Drop the ready messages of a queue.
    Purge,
    /// Ask whether a queue or an exchange exists, and for its properties.
    Inspect,
    /// Accept, release or reject a delivery.
    Settle,
    /// Use the admin API.
    Manage,
    /// See everything: all vhosts, connections and statistics.
    Monitor,
    /// Set the policies of a vhost.
    SetPolicy,
    /// Administer users, vhosts, rights and the broker.
    Administer,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Action::Enter => "enter",
            Action::Publish => "publish to",
            Action::Reply => "reply to",
            Action::Answer => "answer to",
            Action::Receive => "receive replies at",
            Action::Consume => "consume from",
            Action::Subscribe => "subscribe to",
            Action::Bind => "bind",
            Action::BindTo => "bind to",
            Action::Forward => "forward to",
            Action::ForwardFrom => "forward from",
            Action::Declare => "declare",
            Action::DeclareUnnamed => "leave to the broker the name of",
            Action::Create => "create",
            Action::Delete => "delete",
            Action::Purge => "purge",
            Action::Inspect => "inspect",
            Action::Settle => "settle deliveries of",
            Action::Manage => "manage",
            Action::Monitor => "monitor",
            Action::SetPolicy => "set policies of",
            Action::Administer => "administer",
        })
    }
}

/// The object of an action.
#[derive(Debug, Clone, Copy)]
pub enum Object<'a> {
    /// The broker as a whole.
    Broker,
    /// A vhost as a whole.
    Vhost,
    /// An exchange as a whole, with all subjects.
    Exchange(&'a [u8]),
    /// A subject in an exchange.
    Subject {
        /// Its name; empty for the default exchange.
        exchange: &'a [u8],
        /// The subject or routing key, as the client wrote it.
        subject: &'a [u8],
        /// Whether the exchange is a topic exchange. May be false unless
        /// [`Identity::is_limited_by_key`] is true.
        ///
        /// [`Identity::is_limited_by_key`]: super::Identity::is_limited_by_key
        is_topic: bool,
    },
    /// A pattern in an exchange.
    Pattern {
        /// Its name; empty for the default exchange.
        exchange: &'a [u8],
        /// The pattern, as the key of a binding.
        key: &'a BindingKey,
        /// The group that shares the messages, if any.
        group: Option<&'a [u8]>,
        /// As in [`Object::Subject`].
        is_topic: bool,
    },
    /// A queue, by its name; it need not exist.
    Queue(&'a [u8]),
    /// An inbox of any connection: rights do not tell them apart.
    Inbox,
}

impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Object::Broker => f.write_str("the broker"),
            Object::Vhost => f.write_str("this vhost"),
            Object::Exchange(exchange) => write!(f, "exchange `{}`", Printable(exchange)),
            Object::Subject { exchange, subject, .. } => {
                write!(f, "exchange `{}` with `{}`", Printable(exchange), Printable(subject))
            }
            Object::Pattern { exchange, key, .. } => {
                write!(f, "exchange `{}` with `{}`", Printable(exchange), key.text)
            }
            Object::Queue(queue) => write!(f, "queue `{}`", Printable(queue)),
            Object::Inbox => f.write_str("an inbox"),
        }
    }
}
