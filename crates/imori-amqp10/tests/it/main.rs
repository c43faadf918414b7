//! Tests of the codec against its table, the specification and another codec's bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod composites;
mod golden;
mod specification;
mod table;
mod address;
mod check;
mod disposition;
mod frame;
mod header_block;
mod login;
mod message;
mod request;
mod scram;
mod session;
mod state;
mod transaction;
