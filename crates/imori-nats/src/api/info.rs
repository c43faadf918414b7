//! The state of streams and consumers, as answers report it.

use imori_core::index::Filter;
use imori_core::queue::Queue;
use imori_core::stream::{Position, Stream, StreamConsumer};
use imori_core::time::Time;
use imori_streams::duration::Nanos;
use imori_streams::settings::{config_of, config_of_consumer};
use imori_streams::time::Timestamp;
use imori_streams::units::time;

use crate::jetstream::consumer_info::{ConsumerInfo, PriorityGroupState, SequenceInfo};
use crate::jetstream::stream_info::{StreamInfo, StreamState};

/// Sequence numbers without a message that an answer lists.
const REMOVED_MAX: usize = 1_000_000;

/// What an answer reports of a stream besides its state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Details<'a> {
    /// The subjects to count; `None` for none.
    pub subjects: Option<&'a Filter>,
    /// The sequence numbers without a message are listed.
    pub has_removed: bool,
}

/// The configuration and the state of a stream.
#[must_use]
pub fn stream_info(queue: &Queue, details: Details<'_>, now: Time) -> StreamInfo {
    let Some(stream) = queue.stream() else { return StreamInfo::default() };
    StreamInfo {
        config: config_of(queue),
        created: time(stream.created()),
        state: stream_state(queue, stream, details),
        ts: time(now),
        ..StreamInfo::default()
    }
}

fn stream_state(queue: &Queue, stream: &Stream, details: Details<'_>) -> StreamState {
    let (index, last) = (stream.index(), queue.last_sequence());
    let (first_time, last_time) = stream.times();
    let first = index.first().unwrap_or(if last == 0 { 0 } else { last + 1 });
    let stamp = |at: Time| if at == Time(0) { Timestamp::ZERO } else { time(at) };
    let subjects = details.subjects.into_iter().flat_map(|filter| index.counts(filter));
    StreamState {
        messages: index.len(),
        bytes: index.bytes(),
        first_seq: first,
        first_ts: if index.is_empty() { Timestamp::ZERO } else { stamp(first_time) },
        last_seq: last,
        last_ts: stamp(last_time),
        num_subjects: index.subject_count() as u64,
        subjects: subjects
            .map(|(subject, count)| (String::from_utf8_lossy(subject).into_owned(), count))
            .collect(),
        num_deleted: if last == 0 { 0 } else { (last + 1).saturating_sub(first).saturating_sub(index.len()) },
        deleted: if details.has_removed { index.removed(last, REMOVED_MAX) } else { Vec::new() },
        consumer_count: stream.consumers().count() as u64,
        ..StreamState::default()
    }
}

/// The configuration and the state of a consumer.
#[must_use]
pub fn consumer_info(stream: &str, consumer: &StreamConsumer, now: Time) -> ConsumerInfo {
    let place = |(place, at): (Position, Option<Time>)| SequenceInfo {
        consumer_seq: place.consumer,
        stream_seq: place.stream,
        last_active: at.map(time),
    };
    let config = config_of_consumer(consumer);
    let pin = consumer.pin();
    // All groups of a consumer share one pin, which nats-server too reports for the first.
    let group = config.priority_groups.first().map(|group| PriorityGroupState {
        group: group.clone(),
        pinned_client_id: pin.map(|pin| pin.id.to_string()).unwrap_or_default(),
        pinned_ts: pin.map_or(Timestamp::ZERO, |pin| time(pin.since)),
    });
    let paused_until = consumer.settings().paused_until.filter(|_| consumer.is_paused(now));
    let pause = paused_until.map(|until| until.since(now).as_nanos());
    ConsumerInfo {
        stream_name: stream.to_owned(),
        name: consumer.name().to_string(),
        created: time(consumer.created()),
        config,
        delivered: place(consumer.delivered()),
        ack_floor: place(consumer.floor()),
        num_ack_pending: consumer.pending_len() as u64,
        num_redelivered: consumer.redelivered_len() as u64,
        num_waiting: consumer.waiting_len() as u64,
        num_pending: consumer.unread(),
        push_bound: consumer.is_active(),
        paused: pause.is_some(),
        pause_remaining: pause.map_or(Nanos::ZERO, |nanos| Nanos(i64::try_from(nanos).unwrap_or(i64::MAX))),
        ts: time(now),
        priority_groups: group.into_iter().collect(),
    }
}
