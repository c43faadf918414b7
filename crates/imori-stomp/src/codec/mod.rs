//! STOMP's bytes: frames of both ends, their commands, headers, escapes, numbers and versions.
//!
//! The codec has no state of a client, and copies nothing that it can lend.

pub mod decode;
pub mod encode;
mod scan;
pub mod frame;
pub mod escape;
pub mod command;
pub mod error;
pub mod number;
pub mod version;
