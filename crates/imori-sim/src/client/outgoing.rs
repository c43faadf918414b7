//! A message to send, its destination, and its body.

pub(crate) use crate::message_text::{body, shared_name};
use crate::model::To;
use crate::workload::QueueSpec;

/// A message to send.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: To,
    pub(crate) place: Destination,
    pub(crate) arguments: &'a [(&'static str, String)],
    /// The inbox of its publisher that receives replies.
    pub(crate) reply_to: Option<usize>,
    /// Whether the message carries its number, and its other properties, in headers.
    pub(crate) has_headers: bool,
    pub(crate) size: usize,
    pub(crate) priority: Option<u8>,
    pub(crate) expiration_ms: Option<u64>,
    pub(crate) delay_ms: Option<u64>,
    /// The message that shares its id, perhaps itself.
    pub(crate) once: Option<usize>,
    pub(crate) wants_receipt: bool,
    pub(crate) is_in_transaction: bool,
    pub(crate) is_persistent: bool,
    /// Whether the journal has no room for it.
    pub(crate) is_too_large: bool,
}

impl Outgoing<'_> {
    pub(crate) fn new(to: To, place: Destination) -> Outgoing<'static> {
        Outgoing {
            to,
            place,
            arguments: &[],
            reply_to: None,
            has_headers: true,
            size: 8,
            priority: None,
            expiration_ms: None,
            delay_ms: None,
            once: None,
            wants_receipt: false,
            is_in_transaction: false,
            is_persistent: false,
            is_too_large: false,
        }
    }
}

/// A destination or source in the broker, independent of protocol.
#[derive(Debug, Clone)]
pub(crate) enum Destination {
    /// A queue; protocols that can declare it by use do so.
    Queue(String),
    /// A queue that exists.
    DeclaredQueue(String),
    /// A subject of the topic exchange, or a pattern with the wildcards of AMQP.
    Topic(String),
    /// A reply address, as a delivery named it.
    Reply(String),
}

impl Destination {
    /// The place of one of the run's queues.
    pub(crate) fn of(spec: &QueueSpec) -> Destination {
        match spec.pattern {
            Some(_) => Destination::DeclaredQueue(spec.name.clone()),
            None => Destination::Queue(spec.name.clone()),
        }
    }
}

/// The publisher's name for a message.
pub(crate) fn message_name(message: usize) -> String {
    format!("m{message}")
}
