//! A client inside the process, by which the admin API, automation and the gateway use the broker.
//!
//! It has an outbound half like every connection, with the same limits, rights and verbs, but no
//! socket and no protocol: its encoder writes frames that [`Incoming`] represents. Its owner calls
//! [`Client`] in turns of a cell, as it calls [`Inbound`](crate::inbound::Inbound) for connections.

mod client;
mod incoming;
mod encoder;
mod outgoing;

pub use client::{Client, Published};
pub use encoder::InternalEncoder;
pub use incoming::{Frames, Incoming, IncomingMessage};
pub use outgoing::{BrokerHeaders, OutgoingMessage};
