//! AMQP 0-9-1 with RabbitMQ's extensions as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends. Modules are listed in reading order; protocol crates share module
//! names where they share jobs.

pub mod connection;
mod commands;
mod client;
mod channel;
mod content;
mod transaction;
pub mod delivery;
pub mod settings;
mod header_block;
mod protocol_error;
pub mod codec;
pub mod limits;

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::commands::token::named;
    pub use crate::connection::state::{Action, Kind, State, action};
    pub use crate::content::{
        Behind, Content, ContentError, Finished, RESERVED_AFTER_BYTES, Unfinished, behind, frames,
    };
    pub use crate::header_block::{BASIC, Requests, read, value};
    pub use crate::protocol_error::ProtocolError;
}
