//! Protocols: one driver each, and the session that opens a connection.

pub mod session;
pub(crate) mod stomp;
mod stomp_frame;
pub(crate) mod nats;
pub(crate) mod amqp;
mod amqp_reader;
pub(crate) mod amqp10;
mod amqp10_reader;
mod amqp10_set_up;
pub(crate) mod driver;
pub(crate) mod template;
pub(crate) mod credit;
