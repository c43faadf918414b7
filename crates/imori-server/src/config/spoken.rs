//! The protocols as they are counted: each version of AMQP by itself.

use super::address::ProtocolName;

/// A protocol that clients speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoken {
    /// STOMP.
    Stomp,
    /// NATS.
    Nats,
    /// AMQP 0-9-1.
    Amqp091,
    /// AMQP 1.0.
    Amqp10,
}

impl Spoken {
    /// Every protocol there is.
    pub(crate) const ALL: [Spoken; 4] = [Spoken::Stomp, Spoken::Nats, Spoken::Amqp091, Spoken::Amqp10];

    /// The protocol of a listener; `None` where a client chooses a version of it.
    pub(crate) fn of(protocol: ProtocolName) -> Option<Spoken> {
        match protocol {
            ProtocolName::Stomp => Some(Spoken::Stomp),
            ProtocolName::Nats => Some(Spoken::Nats),
            ProtocolName::Amqp => None,
        }
    }

    /// The value of the label `protocol`, as RabbitMQ has it where it has the protocol.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Spoken::Stomp => "stomp",
            Spoken::Nats => "nats",
            Spoken::Amqp091 => "amqp091",
            Spoken::Amqp10 => "amqp10",
        }
    }
}
