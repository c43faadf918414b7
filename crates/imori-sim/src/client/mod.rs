//! A virtual client: what it has sent, what it waits for, and what it makes of what it gets.

mod actions;
mod publishing;
mod reading;
mod receipt;
mod delivery;
mod errors;
mod closing;
mod stomp_client;
mod client;
mod outgoing;

pub(crate) use client::Client;
pub(crate) use outgoing::{body, shared_name};
