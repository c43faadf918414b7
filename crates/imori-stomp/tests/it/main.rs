//! Whole conversations with the real core, in a world of one cell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

use imori_stomp::header_reader;

mod client;
mod press;
mod split;
mod talk;
mod turn;
#[allow(dead_code, reason = "other tests use more of it")]
mod world;
