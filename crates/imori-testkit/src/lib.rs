//! The core in a single-threaded world without sockets, clock or disk, for tests, benchmarks and
//! fuzz targets.
//!
//! [`TestWorld`] runs the broker's verbs and catches locks taken in the wrong order. A [`Caller`]
//! calls verbs directly; a [`Client`] speaks a protocol in bytes. Nothing here is part of the
//! broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

pub mod toy;
mod client;
mod caller;
mod world;
mod room;
mod plain;

pub use caller::{Caller, TestMessage, dying_to};
pub use client::{Client, answers};
pub use plain::{Lines, Plain};
pub use room::TestRoom;
pub use world::{LIMITS, ROOMY_LIMITS, TestWorld, VHOST, verdict};
