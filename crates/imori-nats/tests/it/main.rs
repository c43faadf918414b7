//! Conversations with the real core, in a world of one cell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod client;
mod login;
mod throttle;
mod split;
mod talk;
mod turn;
