//! The settings of a queue: those that its declaration fixed, or those in effect.

use std::time::Duration;

use crate::confirm::Level;
use crate::id::ConnectionId;
use crate::message::Value;
use crate::name::Name;
use crate::policy::{Matched, Overflow, QueueKind};
use crate::route::Arguments;

/// The argument of a subscription's queue that names its reader, whose own messages it does not take.
pub const NO_LOCAL_ARGUMENT: &str = "x-no-local";

/// Where a queue's rejected, expired and overflowing messages go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetterTarget {
    /// The exchange they are published to.
    pub exchange: Name,
    /// The routing key they get; their own where there is none.
    pub routing_key: Option<Name>,
}

/// The properties of a queue. A declaration fixes all of them; a policy changes the limits that are in effect.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct QueueSettings {
    /// The kind that its declaration names.
    pub kind: QueueKind,
    /// The queue outlives the broker, and so do its persistent messages.
    pub is_durable: bool,
    /// Only this connection may use it, and it dies with it.
    pub exclusive_to: Option<ConnectionId>,
    /// The queue goes when its last consumer goes.
    pub is_auto_delete: bool,
    /// The queue goes after this long without a consumer or a declaration.
    pub expires: Option<Duration>,
    /// How long a message may wait.
    pub message_ttl: Option<Duration>,
    /// How many messages may wait.
    pub length_max: Option<u64>,
    /// How many bytes of bodies may wait.
    pub length_bytes_max: Option<u64>,
    /// The treatment of messages beyond these limits.
    pub overflow: Overflow,
    /// Where messages go that are not accepted.
    pub dead_letter: Option<DeadLetterTarget>,
    /// The highest priority it tells apart; without it there are none.
    pub priority_max: Option<u8>,
    /// How many deliveries of a message may fail before it is dead-lettered.
    pub delivery_limit: Option<u32>,
    /// For how long it takes no message of an id that it took before.
    pub dedup_window: Option<Duration>,
    /// One consumer at a time gets deliveries, the others wait to take its place.
    pub is_single_active: bool,
    /// How safe a persistent message is when it is confirmed; the broker's default where nothing is said.
    pub level: Option<Level>,
    /// Arguments of its declaration that have no effect. A later declaration has to give them too.
    pub others: Arguments,
}

impl QueueSettings {
    /// Tells whether it outlives the broker: what belongs to a connection or goes with its consumers does not.
    pub fn survives(&self) -> bool {
        self.is_durable && self.exclusive_to.is_none() && !self.is_auto_delete
    }

    /// The publisher whose messages it does not take, by the argument [`NO_LOCAL_ARGUMENT`].
    pub fn no_local(&self) -> Option<&[u8]> {
        self.others.entries().iter().find_map(|(name, value)| match value {
            Value::Text(text) if name.as_bytes() == NO_LOCAL_ARGUMENT.as_bytes() => Some(&**text),
            _ => None,
        })
    }
}

/// The policies that act on a queue, and its declaration, which says less than what is in effect.
#[derive(Debug)]
pub(crate) struct Governed {
    pub(crate) declared: QueueSettings,
    pub(crate) matched: Matched,
}
