//! Conversations with the real core, in a world of one cell.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod talk;
mod stomp;
mod nats;
mod amqp10;
mod amqp091;
mod toy;
