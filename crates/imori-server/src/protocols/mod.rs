//! The protocols that clients speak: the table of them, and for each a file with its numbers and its settings.
//!
//! To add a protocol, write its crate, its file here, a line in both tables and a variant of
//! [`Spoken`](crate::config::Spoken). To leave one out, delete them.

mod table;
mod parts;
mod stomp;
mod nats;
mod amqp091;
mod amqp10;
mod part;

pub(crate) use parts::{archive_forms, transfer_words};
pub use parts::{header_reader, stream_forms};
pub use table::{Protocol, ProtocolSettings, Scratch};
