//! A virtual client: what it has sent, what it waits for, and what it makes of what it gets.

mod actions;
mod publishing;
mod reading;
mod confirm;
mod delivery;
mod errors;
mod closing;
mod commands;
mod client;
mod stomp_client;
mod nats_client;
mod internal_client;
mod protocol;
mod outgoing;
mod place;

pub(crate) use client::{Client, OwnSubscription};
pub(crate) use commands::NewSubscription;
pub(crate) use internal_client::InternalClient;
pub(crate) use nats_client::NatsClient;
pub(crate) use outgoing::{body, shared_name};
pub(crate) use place::Place;
pub(crate) use protocol::ClientProtocol;
pub(crate) use stomp_client::StompClient;
