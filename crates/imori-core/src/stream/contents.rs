//! The state of a stream as plain data, to compare it with the state of the same stream elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::consumer::{Position, StreamConsumer};
use super::settings::ConsumerSettings;
use super::stream::Stream;
use crate::index::Index;
use crate::message::Schedule;
use crate::name::Name;
use crate::time::Time;

/// What a stream has beside its messages, as far as it outlives the broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamContents {
    /// When the stream was made.
    pub created: Time,
    /// The number of the next message.
    pub next: u64,
    /// The messages of the index by sequence number.
    pub index: BTreeMap<u64, IndexedMessage>,
    /// When messages with a time to live of their own go, with their sequence numbers.
    pub ttls: BTreeSet<(Time, u64)>,
    /// The schedules of messages, each with the time of its last publish.
    pub schedules: BTreeMap<u64, (Arc<Schedule>, Time)>,
    /// The counters by subject.
    pub counters: BTreeMap<Name, CounterContents>,
    /// The consumers that outlive the broker, by name.
    pub consumers: BTreeMap<Name, ConsumerContents>,
}

/// A message in the index of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedMessage {
    /// The subject.
    pub subject: Name,
    /// Bytes as the limits of the stream count them.
    pub bytes: u32,
    /// The message stays whatever the limit of age is.
    pub never_expires: bool,
    /// The message tells that its subject was deleted.
    pub is_marker: bool,
}

/// A counter of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterContents {
    /// The message that tells the value.
    pub last: u64,
    /// The value.
    pub value: Box<[u8]>,
}

/// The state of a consumer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerContents {
    /// When the consumer was made.
    pub created: Time,
    /// The settings.
    pub settings: ConsumerSettings,
    /// The latest delivery.
    pub delivered: Position,
    /// All deliveries up to this one are acknowledged.
    pub floor: Position,
    /// Sequence number, number of the latest delivery and number of deliveries of each message that is not acknowledged.
    pub pending: Vec<(u64, u64, u64)>,
    /// The messages that are still to be delivered or acknowledged.
    pub needed: BTreeSet<u64>,
    /// Number of messages that nobody has got yet.
    pub unread: u64,
    /// A record has this state. Otherwise records have an earlier one, and what was acknowledged since.
    pub is_recorded: bool,
}

impl Stream {
    /// Describes the stream; `next` is the number of its next message.
    pub(crate) fn contents(&self, next: u64) -> StreamContents {
        let indexed = |sequence: u64| {
            let message = IndexedMessage {
                subject: Name::new(self.index.subject(sequence)?),
                bytes: self.index.size(sequence)?,
                never_expires: self.roles.never_expires(sequence),
                is_marker: self.roles.is_marker(sequence),
            };
            Some((sequence, message))
        };
        let counters = self.counters.iter().map(|(subject, counter)| {
            let counter = CounterContents { last: counter.last, value: counter.value.clone() };
            (Name::new(subject), counter)
        });
        let schedule = |sequence| {
            let scheduled = self.roles.scheduled(sequence)?;
            Some((sequence, (Arc::clone(&scheduled.schedule), scheduled.last)))
        };
        let lasting = self.consumers.values().filter(|consumer| consumer.settings.is_durable);
        StreamContents {
            created: self.created,
            next,
            index: self.index.all_from(0).filter_map(indexed).collect(),
            ttls: self.ttls.iter().copied().filter(|(_, sequence)| self.index.contains(*sequence)).collect(),
            schedules: self.index.all_from(0).filter_map(schedule).collect(),
            counters: counters.collect(),
            consumers: lasting
                .map(|consumer| (consumer.name.clone(), consumer.contents(&self.index)))
                .collect(),
        }
    }
}

impl StreamConsumer {
    fn contents(&self, index: &Index) -> ConsumerContents {
        let pending =
            self.pending.iter().map(|(sequence, pending)| (*sequence, pending.number, pending.deliveries));
        let is_needed =
            |sequence: &u64| index.subject(*sequence).is_some_and(|subject| self.needs(*sequence, subject));
        ConsumerContents {
            created: self.created,
            settings: self.settings.clone(),
            delivered: self.delivered,
            floor: self.floor,
            pending: pending.collect(),
            needed: index.all_from(0).filter(is_needed).collect(),
            unread: self.unread,
            is_recorded: !self.is_changed,
        }
    }
}
