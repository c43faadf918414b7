//! A whole broker with users of its own, and clients of each protocol that write raw bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod broker;
mod wire;
mod renewal;
mod rights;
mod internal_client;
