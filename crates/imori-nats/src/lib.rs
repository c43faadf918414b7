//! The NATS client protocol as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends: the broker decodes what clients say, and the benchmark and the
//! command line decode what a server says. The files stand in reading order; every protocol crate
//! has the same ones where it has the same jobs.

pub mod connection;
mod keepalive;
mod commands;
mod client;
mod sids;
mod protocol_error;
pub mod delivery;
pub mod settings;
mod header_block;
pub mod address;
pub mod codec;
pub mod limits;

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
