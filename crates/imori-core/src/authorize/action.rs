//! Actions of clients and what they are done to.

use std::fmt;

use crate::name::Printable;
use crate::route::BindingKey;

/// An action of a client that needs permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Enter a vhost.
    Enter,
    /// Publish to an exchange with a subject.
    Publish,
    /// Answer to an inbox.
    Reply,
    /// Publish the answer to a message that the client received.
    Answer,
    /// Have an inbox.
    Receive,
    /// Read from a queue.
    Consume,
    /// Read what is published to an exchange with subjects that match a pattern.
    Subscribe,
    /// Bind a queue or an exchange to an exchange, or unbind it: the end to which messages come.
    Bind,
    /// Bind something to an exchange, or unbind it: the end from which messages come.
    BindTo,
    /// Let messages with any subject go on to an exchange: dead letters, and messages without a receiver.
    Forward,
    /// Let messages of a queue or an exchange go on elsewhere.
    ForwardFrom,
    /// Declare a queue or an exchange, whether or not it is there.
    Declare,
    /// Declare a queue under a name that the broker makes.
    DeclareUnnamed,
    /// Make a queue or an exchange that is not there.
    Create,
    /// Delete a queue or an exchange.
    Delete,
    /// Drop what waits in a queue.
    Purge,
    /// Ask whether a queue or an exchange is there, and what it has.
    Inspect,
    /// Accept, release or reject.
    Settle,
    /// Use the admin API.
    Manage,
    /// See what others do: all vhosts, connections and numbers.
    Monitor,
    /// Set policies of a vhost.
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
        /// The exchange.
        exchange: &'a [u8],
        /// The subject.
        subject: &'a [u8],
        /// The exchange is of the kind topic. False will do where [`Identity::is_limited_by_key`] says so.
        ///
        /// [`Identity::is_limited_by_key`]: super::Identity::is_limited_by_key
        is_topic: bool,
    },
    /// A pattern in an exchange.
    Pattern {
        /// The exchange.
        exchange: &'a [u8],
        /// The pattern, as the key of a binding.
        key: &'a BindingKey,
        /// The group among whose members messages are shared.
        group: Option<&'a [u8]>,
        /// As that of [`Object::Subject`].
        is_topic: bool,
    },
    /// A queue.
    Queue(&'a [u8]),
    /// An inbox.
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
