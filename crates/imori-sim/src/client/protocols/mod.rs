//! How a virtual client speaks: one file a protocol, behind one trait.

mod stomp;
mod nats;
mod toy;
mod amqp091;
mod amqp10;
mod internal;
mod protocol;

pub(crate) use amqp10::Amqp10Client;
pub(crate) use amqp091::AmqpClient;
pub(crate) use internal::InternalClient;
pub(crate) use nats::NatsClient;
pub(crate) use protocol::*;
pub(crate) use stomp::StompClient;
pub(crate) use toy::ToyClient;
