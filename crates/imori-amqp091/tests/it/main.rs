//! Conversations, and tests of the codec against its table and another codec's bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod login;
mod methods;
mod golden;
mod spec;
mod split;
mod talk;
mod text;
mod turn;
