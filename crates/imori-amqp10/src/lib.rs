//! AMQP 1.0 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends. The files stand in reading order; every protocol crate has the same ones where it has
//! the same jobs.

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

/// The protocol and its version, as operators see it.
pub const PROTOCOL: &str = "AMQP 1.0";

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
