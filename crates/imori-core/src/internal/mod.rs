//! A client inside the process, by which the admin APIs, automation and gateways use the broker.
//!
//! [`Connection`] is an [`Inbound`](crate::inbound::Inbound) like that of a protocol, and has an outbound half with
//! the same limits, rights and verbs. It has no bytes to decode: a [`Pipe`] holds its typed [`Command`]s, and the
//! transport gives one byte for each. What it is sent, [`Incoming`], stays in the pipe too, and its encoder writes a
//! ticket for it into the outbound buffer, which counts as many bytes as the message has.

mod connection;
mod moves;
mod command;
mod encoder;
mod pipe;
mod incoming;
mod outgoing;

pub use command::{
    Bind, BindTarget, Check, Command, CommandError, Consume, DeclareQueue, Done, Subscribe, Verb,
};
pub use connection::{Connection, Settings};
pub use encoder::InternalEncoder;
pub use incoming::{Incoming, IncomingMessage, Receiver, SubscriptionEnd};
pub use moves::{MoveBatch, MoveTarget};
pub use outgoing::{BrokerHeaders, OutgoingMessage};
pub use pipe::{Pipe, TICKET_BYTES, tickets};
