//! Tests of the real binary.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod command_line;
mod configuration;
mod reference;
mod serve;
mod store;
mod client;
mod nats_client;
mod peer;
mod binary;
#[path = "../../../imori-store/tests/it/fixture.rs"]
mod fixture;
