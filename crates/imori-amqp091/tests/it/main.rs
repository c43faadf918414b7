//! Tests of the codec against its table and another codec's bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod content;
mod delivery;
mod frame;
mod golden;
mod header_block;
mod methods;
mod properties;
mod spec;
mod state;
mod table;
mod named_fields;
mod token;
