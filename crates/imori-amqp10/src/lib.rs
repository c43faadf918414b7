//! AMQP 1.0 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends. Modules are listed in reading order; protocol crates share module
//! names where they share jobs.

pub mod connection;
mod commands;
mod management;
mod client;
pub mod delivery;
pub mod settings;
pub mod message;
mod header_block;
mod transaction;
mod session;
mod link;
mod temporary;
mod address;
pub mod protocol_error;
pub mod codec;
pub mod limits;

/// Name and version of the protocol, as shown to operators.
pub const PROTOCOL: &str = "AMQP 1.0";

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
