//! Virtual clients: what they send, what they expect, and how they check what they receive.

mod actions;
mod publishing;
mod reading;
mod confirm;
mod delivery;
mod commands;
mod protocols;
mod errors;
mod client;
mod connection;
mod outgoing;

pub(crate) use client::{Awaited, Client, OwnSubscription};
pub(crate) use commands::NewSubscription;
pub(crate) use connection::Connection;
pub(crate) use outgoing::{Destination, body, shared_name};
pub(crate) use protocols::{
    Amqp10Client, AmqpClient, ClientProtocol, InternalClient, NatsClient, StompClient, ToyClient,
};
pub(crate) use reading::{read_last_bytes, receive};
