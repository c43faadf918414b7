//! A client inside the process, used by the admin APIs, automation and gateways.
//!
//! A [`Connection`] is an [`Inbound`](crate::inbound::Inbound) like a protocol's, and has an outbound half with the
//! same limits, rights and verbs. It decodes no bytes: a [`Pipe`] holds its typed [`Command`]s, and the transport reads
//! one byte for each. Its [`Incoming`] messages and answers stay in the pipe too. The encoder writes only a ticket for
//! each to the outbound buffer, and the ticket counts as many bytes as its message.

mod connection;
mod streams;
mod encoder;
mod pipe;
mod incoming;
mod command;
mod moves;
mod outgoing;

pub use command::{
    Bind, BindTarget, Check, Command, CommandError, Consume, DeclareQueue, Done, StreamVerb, Subscribe, Verb,
};
pub use connection::{Connection, Settings};
pub use encoder::InternalEncoder;
pub use incoming::{Incoming, IncomingMessage, Receiver, SubscriptionEnd};
pub use moves::{MoveBatch, MoveTarget};
pub use outgoing::{BrokerHeaders, OutgoingMessage};
pub use pipe::{Pipe, TICKET_BYTES, tickets};
