//! The core in a world of one thread, for tests, benchmarks and fuzz targets: no socket, no clock, no disk.
//!
//! [`TestWorld`] runs the broker's verbs and notices locks that are taken in the wrong order. A [`Caller`]
//! calls the verbs directly; a [`Client`] speaks a protocol's bytes; a [`Talk`] is a conversation in a file.
//! Nothing here is part of the broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

pub mod toy;
mod talk;
mod client;
mod caller;
mod world;
mod room;
mod plain;

pub use caller::{Caller, TestMessage, dying_to};
pub use client::{Client, answers};
pub use plain::{Lines, Plain};
pub use room::TestRoom;
pub use talk::{Dialogue, Settings, Talk, check_conversations};
pub use world::{LIMITS, ROOMY_LIMITS, TestWorld, VHOST, verdict};
