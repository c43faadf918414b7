//! Encodes and decodes NATS: operations of both ends, header blocks and numbers.
//!
//! The codec keeps no client state and borrows rather than copies where it can.

pub mod decode;
pub mod encode;
pub mod operation;
pub mod headers;
pub mod connect;
pub mod info;
pub mod error;
pub mod number;
pub(crate) mod words;
