//! Virtual clients: what they send, what they expect, and how they check what they receive.

mod actions;
mod publishing;
mod reading;
mod confirm;
mod delivery;
mod commands;
mod stomp_client;
mod nats_client;
mod toy_client;
mod amqp_client;
mod amqp10_client;
mod internal_client;
mod errors;
mod client;
mod connection;
mod protocol;
mod outgoing;

pub(crate) use amqp_client::AmqpClient;
pub(crate) use amqp10_client::Amqp10Client;
pub(crate) use client::{Awaited, Client, OwnSubscription};
pub(crate) use commands::NewSubscription;
pub(crate) use connection::Connection;
pub(crate) use internal_client::InternalClient;
pub(crate) use nats_client::NatsClient;
pub(crate) use outgoing::{Destination, body, shared_name};
pub(crate) use protocol::ClientProtocol;
pub(crate) use reading::{read_last_bytes, receive};
pub(crate) use stomp_client::StompClient;
pub(crate) use toy_client::ToyClient;
