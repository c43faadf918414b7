//! A whole broker with users of its own, and clients of each protocol that say every byte themselves.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod broker;
mod wire;
mod renewal;
mod rights;
