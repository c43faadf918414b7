//! A client inside the process: the admin API, automation and the gateway publish, consume, ask and answer by it.
//!
//! It has an outbound half as every connection has, with the same limits, rights and verbs. It has no socket and
//! no protocol: its encoder writes frames that [`Incoming`] reads. Who runs it calls [`Client`] in turns of a
//! cell, as [`Inbound`](crate::inbound::Inbound) is called for others.

mod client;
mod incoming;
mod encoder;
mod outgoing;

pub use client::{Client, Published};
pub use encoder::InternalEncoder;
pub use incoming::{Frames, Incoming, IncomingMessage};
pub use outgoing::{BrokerHeaders, OutgoingMessage};
