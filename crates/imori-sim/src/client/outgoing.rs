//! A message before it is sent, the place it goes to, and what its body is.

pub(crate) use crate::message_text::{body, shared_name};
use crate::model::To;
use crate::workload::QueueSpec;

/// A message to send.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing<'a> {
    pub(crate) to: To,
    pub(crate) place: Place,
    pub(crate) arguments: &'a [(&'static str, String)],
    /// The inbox of its publisher that takes replies.
    pub(crate) reply_to: Option<usize>,
    /// The message bears its number, and its other properties, in headers.
    pub(crate) has_headers: bool,
    pub(crate) size: usize,
    pub(crate) priority: Option<u8>,
    pub(crate) expiration_ms: Option<u64>,
    pub(crate) delay_ms: Option<u64>,
    /// The message whose id it bears, perhaps itself.
    pub(crate) once: Option<usize>,
    pub(crate) wants_receipt: bool,
    pub(crate) is_in_transaction: bool,
    pub(crate) is_persistent: bool,
    /// The journal has no room for it.
    pub(crate) is_too_large: bool,
}

impl Outgoing<'_> {
    pub(crate) fn new(to: To, place: Place) -> Outgoing<'static> {
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

/// A place of the broker, whatever a protocol calls it.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// A queue, which is declared by use where the protocol can.
    Queue(String),
    /// A queue that is there.
    DeclaredQueue(String),
    /// A subject of the topic exchange, or a pattern with the wildcards of AMQP.
    Topic(String),
    /// An address for replies, as a delivery named it.
    Reply(String),
}

impl Place {
    /// The place of a queue of the run.
    pub(crate) fn of(spec: &QueueSpec) -> Place {
        match spec.pattern {
            Some(_) => Place::DeclaredQueue(spec.name.clone()),
            None => Place::Queue(spec.name.clone()),
        }
    }
}

/// A publisher's name for a message.
pub(crate) fn message_name(message: usize) -> String {
    format!("m{message}")
}
