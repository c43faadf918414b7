//! Encodes and decodes STOMP frames: commands, headers, escapes, numbers and versions, for both
//! ends.
//!
//! The codec keeps no client state and borrows rather than copies where it can.

pub mod decode;
pub mod encode;
mod scan;
pub mod frame;
pub mod escape;
pub mod command;
pub mod error;
pub mod number;
pub mod version;
