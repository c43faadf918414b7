//! The protocols in conversation with the core, in the world of `imori-testkit`, so that the two
//! are compiled for it once: for tests and for fuzzing.
//!
//! Conversations are written in files, which a [`Talk`] runs, or are any bytes that a fuzzer makes
//! up. Nothing here is part of the broker.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

pub mod stomp;
pub mod nats;
pub mod amqp10;
pub mod amqp091;
mod fuzzed;
mod talk;

pub use talk::{Dialogue, Settings, Talk};
