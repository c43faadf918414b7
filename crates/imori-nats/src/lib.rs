//! The NATS client protocol as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends: the broker decodes what clients say, and the benchmark and the
//! command line decode what a server says. The files stand in reading order.

pub mod connection;
mod keepalive;
mod login;
mod subscribe;
mod repeat;
mod publish;
mod session;
mod sids;
mod complaint;
pub mod message;
pub mod settings;
mod text;
pub mod address;
pub mod decode;
pub mod encode;
pub mod operation;
pub mod headers;
pub mod connect;
pub mod info;
pub mod error;
pub mod number;
mod words;
pub mod limits;

pub use text::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
