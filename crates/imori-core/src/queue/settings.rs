//! The settings of a queue, as declared or as in effect.

use std::time::Duration;

use crate::confirm::Level;
use crate::id::ConnectionId;
use crate::message::Value;
use crate::name::Name;
use crate::policy::{Matched, Overflow, QueueKind};
use crate::route::Arguments;
use crate::stream::StreamSettings;

/// The argument of a subscription's queue that names its reader; the queue drops that reader's own messages.
pub const NO_LOCAL_ARGUMENT: &str = "x-no-local";

/// The target of a queue's rejected, expired and overflowing messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterTarget {
    /// The exchange that dead letters are published to.
    pub exchange: Name,
    /// Their routing key; `None` keeps the routing key of each message.
    pub routing_key: Option<Name>,
}

/// The properties of a queue. A declaration fixes all of them; a policy changes the limits that are in effect.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// The kind that its declaration names.
    pub kind: QueueKind,
    /// The queue outlives the broker, and so do its persistent messages.
    pub is_durable: bool,
    /// The only connection that may use the queue, which is deleted with it.
    pub exclusive_to: Option<ConnectionId>,
    /// The queue is deleted with its last consumer.
    pub is_auto_delete: bool,
    /// Time without a consumer or a declaration after which the queue is deleted.
    pub expires: Option<Duration>,
    /// Maximum time that a message may wait.
    pub message_ttl: Option<Duration>,
    /// Maximum number of ready messages.
    pub length_max: Option<u64>,
    /// Maximum bytes of the bodies of ready messages.
    pub length_bytes_max: Option<u64>,
    /// The treatment of messages beyond these limits.
    pub overflow: Overflow,
    /// The target of dead letters; `None` drops them.
    pub dead_letter: Option<DeadLetterTarget>,
    /// The highest priority that the queue distinguishes; `None` for a queue without priorities.
    pub priority_max: Option<u8>,
    /// Failed deliveries that a message may have; one more dead-letters it.
    pub delivery_limit: Option<u32>,
    /// The window in which each message id is accepted only once.
    pub dedup_window: Option<Duration>,
    /// One consumer at a time gets deliveries; the others stand by.
    pub is_single_active: bool,
    /// The level of safety at which persistent messages are confirmed; `None` for the broker's default.
    pub level: Option<Level>,
    /// The settings of a stream; `None` for the defaults, and for other kinds.
    pub stream: Option<Box<StreamSettings>>,
    /// Arguments of its declaration that have no effect. A later declaration has to give them too.
    pub others: Arguments,
}

impl QueueSettings {
    /// Whether the queue survives a restart; exclusive and auto-delete queues never do.
    pub fn survives(&self) -> bool {
        self.is_durable && self.exclusive_to.is_none() && !self.is_auto_delete
    }

    /// The publisher that [`NO_LOCAL_ARGUMENT`] excludes, if the argument is there.
    pub fn no_local(&self) -> Option<&[u8]> {
        self.others.entries().iter().find_map(|(name, value)| match value {
            Value::Text(text) if name.as_bytes() == NO_LOCAL_ARGUMENT.as_bytes() => Some(&**text),
            _ => None,
        })
    }

    /// The user in whose name a stream republishes; `None` if the broker itself does.
    pub fn maker(&self) -> Option<&[u8]> {
        self.stream.as_ref()?.maker.as_ref().map(Name::as_bytes)
    }

    /// Replaces the user in whose name a stream republishes.
    pub(crate) fn set_maker(&mut self, maker: Option<Name>) {
        if let Some(stream) = &mut self.stream {
            stream.maker = maker;
        }
    }
}

/// The policies that apply to a queue, and its declaration before they changed it.
#[derive(Debug)]
pub(crate) struct Governed {
    pub(crate) declared: QueueSettings,
    pub(crate) matched: Matched,
}
