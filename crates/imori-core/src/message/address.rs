//! Where a message is sent to.

use crate::name::Name;

/// The exchange that routes a key to the queue of that name.
pub const DEFAULT_EXCHANGE: &[u8] = b"";

/// The exchange in which NATS subjects, MQTT topics and STOMP `/topic/` live.
pub const TOPIC_EXCHANGE: &[u8] = b"amq.topic";

/// An exchange and a subject (AMQP's routing key) in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    /// The exchange; empty for the default exchange.
    pub exchange: Name,
    /// The subject.
    pub subject: Name,
}

impl Address {
    /// Makes an address of its two parts.
    pub fn new(exchange: &[u8], subject: &[u8]) -> Address {
        Address { exchange: Name::new(exchange), subject: Name::new(subject) }
    }
}
