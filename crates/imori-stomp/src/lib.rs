//! STOMP 1.0, 1.1 and 1.2 as a state machine: bytes in, bytes and commands out.
//!
//! The codec serves both ends: the broker decodes what clients send, and the benchmark and the
//! command line decode what a broker sends. The files stand in reading order.

pub mod connection;
mod parked;
mod keepalive;
mod login;
mod commit;
mod settle;
mod subscribe;
mod repeat;
mod send;
mod send_headers;
mod arguments;
mod session;
mod transactions;
pub mod message;
mod complaint;
mod turn;
pub mod settings;
mod text;
pub mod address;
pub mod heart_beat;
pub mod decode;
pub mod encode;
mod scan;
pub mod frame;
pub mod escape;
pub mod command;
pub mod error;
pub mod number;
pub mod limits;
pub mod version;

pub use text::{FORMS, SOLE_ORIGINS, header_reader, reader_of_form};
