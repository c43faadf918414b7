//! NATS's bytes: operations of both ends, header blocks, the JSON of CONNECT and INFO, numbers.
//!
//! The codec has no state of a client, and copies nothing that it can lend.

pub mod decode;
pub mod encode;
pub mod operation;
pub mod headers;
pub mod connect;
pub mod info;
pub mod error;
pub mod number;
pub(crate) mod words;
