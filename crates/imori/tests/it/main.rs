//! Tests of the real program, and of the parts of its command line.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod command_line;
mod configuration;
mod loading;
mod arguments;
mod reference;
mod serve;
mod service_manager;
mod log;
mod store;
mod backup;
mod admin_client;
mod figures;
mod nats_server;
mod client;
mod client_messages;
mod nats_client;
mod peer;
mod binary;
#[path = "../../../imori-store/tests/it/fixture.rs"]
mod fixture;
