//! The NATS client protocol as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends: the broker decodes client operations, the benchmark and the command
//! line decode server operations. Modules are listed in reading order; protocol crates share module
//! names where they share jobs.

pub mod connection;
mod keepalive;
mod commands;
mod api;
mod client;
mod sids;
mod protocol_error;
pub mod delivery;
pub mod settings;
mod header_block;
pub mod archive;
pub mod jetstream;
pub mod address;
pub mod counter;
pub mod codec;
pub mod limits;

pub use api::{Details, NatsArchives, NatsStreams, consumer_info, stream_info};
pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
