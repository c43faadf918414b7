//! The protocols that clients speak, with each version of AMQP separately.

use super::address::ProtocolName;

/// A protocol spoken by clients.
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
    /// All protocols.
    pub const ALL: [Spoken; 4] = [Spoken::Stomp, Spoken::Nats, Spoken::Amqp091, Spoken::Amqp10];

    /// The protocol of a listener; `None` if its clients choose between versions.
    pub(crate) fn of(protocol: ProtocolName) -> Option<Spoken> {
        match protocol {
            ProtocolName::Stomp => Some(Spoken::Stomp),
            ProtocolName::Nats => Some(Spoken::Nats),
            ProtocolName::Amqp => None,
        }
    }

    /// The protocol of the listeners where it is spoken.
    pub fn listener(self) -> ProtocolName {
        match self {
            Spoken::Stomp => ProtocolName::Stomp,
            Spoken::Nats => ProtocolName::Nats,
            Spoken::Amqp091 | Spoken::Amqp10 => ProtocolName::Amqp,
        }
    }

    /// The value of the label `protocol`; RabbitMQ's name if it has one.
    pub const fn label(self) -> &'static str {
        match self {
            Spoken::Stomp => "stomp",
            Spoken::Nats => "nats",
            Spoken::Amqp091 => "amqp091",
            Spoken::Amqp10 => "amqp10",
        }
    }
}
