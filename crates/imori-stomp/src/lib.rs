//! STOMP 1.0, 1.1 and 1.2 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends: the broker decodes client frames, the benchmark and the command line
//! decode broker frames. Modules are listed in reading order; protocol crates share module names
//! where they share jobs.

pub mod connection;
mod parked;
mod commands;
mod client;
mod transactions;
pub mod delivery;
mod protocol_error;
mod outcome;
pub mod settings;
mod header_block;
pub mod address;
pub mod heart_beat;
pub mod codec;
pub mod limits;

pub use header_block::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
