//! Streams: their facts and messages, purge and deletion.

use imori_core::confirm::Level;
use imori_core::entries::Entry;
use imori_core::id::{QueueId, VhostId};
use imori_core::index::{Filter, StreamPurge};
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::policy::Matched;
use imori_core::queue::{Queue, QueueSettings};
use imori_core::stream::{AckPolicy, Position, Stream, StreamConsumer};
use imori_core::time::Time;
use imori_server::broker::Broker;
use imori_streams::consumer_config::ConsumerConfig;
use imori_streams::stream_config::StreamConfig;
use imori_streams::{config_of, config_of_consumer};
use tokio::time::sleep;

use super::message_facts::MessageFacts;
use super::messages::unreadable;
use super::queues::queue_ids;
use super::vhost_operator::VhostOperator;
use crate::http::rest_at;
use crate::limits::{ADMIN_MESSAGES_BYTES_MAX, ADMIN_PAGE_LOOK_EVERY, ADMIN_PAGE_LOOKS_MAX};
use crate::objects::operation_error::OperationError;

/// The streams of these vhosts, sorted by name within each.
pub(crate) async fn stream_ids(broker: &Broker, vhosts: &[VhostId]) -> Vec<(Name, QueueId)> {
    let mut streams = Vec::new();
    for (index, (name, id)) in queue_ids(broker, vhosts).into_iter().enumerate() {
        if broker.with_queue(id, Queue::is_stream) == Some(true) {
            streams.push((name, id));
        }
        rest_at(index).await;
    }
    streams
}

/// The facts about a stream that the admin APIs show.
pub(crate) struct StreamFacts {
    pub(crate) vhost: String,
    pub(crate) name: Name,
    /// Its declaration.
    pub(crate) config: StreamConfig,
    /// The settings in effect, with policies.
    pub(crate) settings: QueueSettings,
    pub(crate) matched: Matched,
    pub(crate) created: Time,
    pub(crate) state: StreamState,
    /// When the first and the last message came; `None` before there was one.
    pub(crate) first_time: Option<Time>,
    pub(crate) last_time: Option<Time>,
    /// The level of safety at which messages are confirmed.
    pub(crate) level: Level,
    pub(crate) consumers: Vec<StreamConsumerFacts>,
}

/// What a stream holds.
pub(crate) struct StreamState {
    pub(crate) messages: u64,
    /// Bytes as limits count them.
    pub(crate) bytes: u64,
    /// The number of the first message, or of the next one if there is none.
    pub(crate) first: u64,
    /// The number of the last message that it ever had.
    pub(crate) last: u64,
    pub(crate) subjects: u64,
    /// Numbers without a message behind the first one.
    pub(crate) deleted: u64,
}

impl StreamState {
    fn of(queue: &Queue, stream: &Stream) -> StreamState {
        let (index, last) = (stream.index(), queue.last_sequence());
        let first = index.first().unwrap_or(if last == 0 { 0 } else { last + 1 });
        let deleted =
            if last == 0 { 0 } else { (last + 1).saturating_sub(first).saturating_sub(index.len()) };
        let (messages, bytes, subjects) = (index.len(), index.bytes(), index.subject_count() as u64);
        StreamState { messages, bytes, first, last, subjects, deleted }
    }
}

/// A consumer of a stream.
pub(crate) struct StreamConsumerFacts {
    pub(crate) name: Name,
    pub(crate) config: ConsumerConfig,
    pub(crate) created: Time,
    pub(crate) delivered: Position,
    pub(crate) last_delivery: Option<Time>,
    pub(crate) ack_floor: Position,
    pub(crate) last_ack: Option<Time>,
    pub(crate) acks: AckPolicy,
    /// Messages that were not delivered yet.
    pub(crate) pending: u64,
    pub(crate) ack_pending: usize,
    pub(crate) redelivered: usize,
    pub(crate) waiting: usize,
    /// The subject of a consumer that pushes, and whether it has a subscription.
    pub(crate) push: Option<(Name, bool)>,
    pub(crate) paused_until: Option<Time>,
    pub(crate) is_durable: bool,
}

impl StreamFacts {
    /// Copies the facts of a stream under its lock; `None` if it is gone, or is no stream.
    pub(crate) fn of(broker: &Broker, id: QueueId) -> Option<StreamFacts> {
        let now = broker.now();
        let (vhost, facts) = broker.with_queue(id, |queue| copy(queue, now)).flatten()?;
        Some(StreamFacts { vhost: broker.vhost_name(vhost), ..facts })
    }
}

fn copy(queue: &Queue, now: Time) -> Option<(VhostId, StreamFacts)> {
    let stream = queue.stream()?;
    let (first, last) = stream.times();
    let came = |time: Time| Some(time).filter(|time| *time != Time(0));
    let facts = StreamFacts {
        vhost: String::new(),
        name: queue.name().clone(),
        config: config_of(queue),
        settings: queue.settings().clone(),
        matched: queue.matched(),
        created: stream.created(),
        state: StreamState::of(queue, stream),
        first_time: came(first).filter(|_| !stream.index().is_empty()),
        last_time: came(last),
        level: queue.level(),
        consumers: stream.consumers().map(|consumer| consumer_facts(consumer, now)).collect(),
    };
    Some((queue.vhost(), facts))
}

fn consumer_facts(consumer: &StreamConsumer, now: Time) -> StreamConsumerFacts {
    let ((delivered, last_delivery), (ack_floor, last_ack)) = (consumer.delivered(), consumer.floor());
    let settings = consumer.settings();
    StreamConsumerFacts {
        name: consumer.name().clone(),
        config: config_of_consumer(consumer),
        created: consumer.created(),
        delivered,
        last_delivery,
        ack_floor,
        last_ack,
        acks: settings.acks,
        pending: consumer.unread(),
        ack_pending: consumer.pending_len(),
        redelivered: consumer.redelivered_len(),
        waiting: consumer.waiting_len(),
        push: settings.push.as_ref().map(|push| (push.subject.clone(), consumer.is_active())),
        paused_until: settings.paused_until.filter(|_| consumer.is_paused(now)),
        is_durable: settings.is_durable,
    }
}

/// A message of a stream.
pub(crate) struct StreamMessageFacts {
    pub(crate) sequence: u64,
    /// When the stream stored it.
    pub(crate) time: Time,
    pub(crate) message: MessageFacts,
}

impl StreamMessageFacts {
    fn of(entry: &Entry) -> StreamMessageFacts {
        let envelope = entry.envelope();
        let message = MessageFacts::of(entry, None);
        StreamMessageFacts { sequence: envelope.sequence, time: envelope.since, message }
    }
}

/// The filter for one pattern in the syntax of NATS; `None` takes every subject.
///
/// # Errors
/// The text is no pattern.
pub(crate) fn subject_filter(subject: Option<&str>) -> Result<Filter, OperationError> {
    let texts: Vec<&[u8]> = subject.into_iter().map(str::as_bytes).collect();
    Filter::of(&texts).map_err(|error| OperationError::Bad(format!("`subject`: {error}")))
}

impl VhostOperator {
    /// Finds a stream. The right to see the vhost is enough.
    ///
    /// # Errors
    /// There is no stream of this name.
    pub(crate) fn stream(&self, name: &str) -> Result<QueueId, OperationError> {
        let id = self.broker.table().queue(self.vhost, name.as_bytes());
        let id = id.filter(|id| self.broker.with_queue(*id, Queue::is_stream) == Some(true));
        id.ok_or_else(|| missing(name))
    }

    async fn run_on_stream(&self, name: &str, verb: StreamVerb) -> Result<Done, OperationError> {
        self.stream(name)?;
        self.run(Verb::Stream { stream: Name::from(name), verb }).await
    }

    /// Reads up to `count` messages of a stream from the sequence number `from` on, in memory or on disk; changes
    /// nothing. Returns fewer once their bodies exceed `ADMIN_MESSAGES_BYTES_MAX`.
    ///
    /// # Errors
    /// [`OperationError`]; the user needs the right to read the stream.
    pub(crate) async fn stream_messages(
        &self,
        name: &str,
        from: u64,
        filter: &Filter,
        count: usize,
    ) -> Result<Vec<StreamMessageFacts>, OperationError> {
        for _ in 0..ADMIN_PAGE_LOOKS_MAX {
            let verb = StreamVerb::Peek { from, filter: filter.clone(), count };
            let Done::Peeked(id, found) = self.run_on_stream(name, verb).await? else {
                return Err(OperationError::Ended);
            };
            if let Some(entries) = self.broker.read_peek(id, found, ADMIN_MESSAGES_BYTES_MAX).await {
                return Ok(entries.iter().map(StreamMessageFacts::of).collect());
            }
            // The page is being written, or was read into memory meanwhile.
            sleep(ADMIN_PAGE_LOOK_EVERY).await;
        }
        Err(unreadable())
    }

    /// Whether a stream has a message from the sequence number `from` on whose subject `filter` takes.
    ///
    /// # Errors
    /// There is no such stream.
    pub(crate) fn has_message_from(
        &self,
        name: &str,
        from: u64,
        filter: &Filter,
    ) -> Result<bool, OperationError> {
        let has = |queue: &Queue| Some(queue.stream()?.index().next(filter, from).is_some());
        self.broker.with_queue(self.stream(name)?, has).flatten().ok_or_else(|| missing(name))
    }

    /// One message of a stream; `None` if it is not there.
    ///
    /// # Errors
    /// As [`VhostOperator::stream_messages`].
    pub(crate) async fn stream_message(
        &self,
        name: &str,
        sequence: u64,
    ) -> Result<Option<StreamMessageFacts>, OperationError> {
        let found = self.stream_messages(name, sequence, &Filter::all(), 1).await?;
        Ok(found.into_iter().find(|message| message.sequence == sequence))
    }

    /// Deletes a message of a stream; `false` if it is not there.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn delete_stream_message(
        &self,
        name: &str,
        sequence: u64,
    ) -> Result<bool, OperationError> {
        match self.run_on_stream(name, StreamVerb::DeleteMessage { sequence }).await? {
            Done::Dropped(count) => Ok(count > 0),
            _ => Err(OperationError::Ended),
        }
    }

    /// Number of messages that a purge would remove.
    ///
    /// # Errors
    /// There is no such stream.
    pub(crate) fn would_purge(&self, name: &str, purge: &StreamPurge) -> Result<u64, OperationError> {
        let count = |stream: &Stream| {
            let (index, filter) = (stream.index(), &purge.filter);
            let behind = purge.up_to.map_or(0, |end| index.count_from(filter, end));
            index.count_from(filter, 0).saturating_sub(behind).saturating_sub(purge.keep)
        };
        let counted = self.broker.with_queue(self.stream(name)?, |queue| queue.stream().map(count));
        counted.flatten().ok_or_else(|| missing(name))
    }

    /// Removes messages of a stream; returns their number.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn purge_stream(&self, name: &str, purge: StreamPurge) -> Result<u64, OperationError> {
        match self.run_on_stream(name, StreamVerb::Purge(purge)).await? {
            Done::Dropped(count) => Ok(count as u64),
            _ => Err(OperationError::Ended),
        }
    }

    /// Deletes a stream with its messages and consumers; returns the number of messages.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn delete_stream(&self, name: &str) -> Result<u64, OperationError> {
        match self.run_on_stream(name, StreamVerb::Delete).await? {
            Done::Dropped(count) => Ok(count as u64),
            _ => Err(OperationError::Ended),
        }
    }
}

fn missing(name: &str) -> OperationError {
    OperationError::Missing("stream", name.to_owned())
}
