//! Records of streams besides their messages.
//!
//! `version u8, kind u8, queue u64`, then by kind: the removed sequence numbers as ranges; the next sequence number
//! and the time at which the stream was made, each as `u64`; a consumer (`name short, created u64`, its settings, its
//! places and the deliveries that are not acknowledged); the `name short` of a consumer that was deleted; a consumer's
//! `name short` and the acknowledged sequence numbers as ranges; or the sequence number of a message and when
//! the stream published it last, each as `u64`, and its schedule.

use std::sync::Arc;

use super::consumer_settings::{consumer_settings, push_consumer_settings};
use super::fields::{Fields, RecordError, push_short};
use super::ranges::{number, push_number, push_ranges, ranges, ranges_of};
use super::schedule::{push_schedule, schedule};
use super::{NewRecord, RecordKind};
use crate::id::DurableQueueId;
use crate::limits::RECORD_ENTRIES_MAX;
use crate::message::Schedule;
use crate::name::Name;
use crate::stream::{ConsumerSettings, Position};
use crate::time::Time;

const VERSION: u8 = 2;

const REMOVED: u8 = 1;
const MARK: u8 = 2;
const CONSUMER: u8 = 3;
const CONSUMER_GONE: u8 = 4;
const ACKED: u8 = 5;
const SCHEDULED: u8 = 6;

/// A record of a stream, which is named by its durable id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamRecord {
    /// Messages are gone: the first and last number of each range.
    Removed(DurableQueueId, Vec<(u64, u64)>),
    /// The next message gets this number or a higher one, and the stream was made at this time.
    Mark(DurableQueueId, u64, Time),
    /// The state of a consumer.
    Consumer(DurableQueueId, Box<ConsumerState>),
    /// A consumer was deleted.
    ConsumerGone(DurableQueueId, Name),
    /// A consumer's messages were acknowledged: the first and last number of each range.
    Acked(DurableQueueId, Name, Vec<(u64, u64)>),
    /// The schedule of a message, by its number, and when it was published last.
    Scheduled(DurableQueueId, u64, Time, Arc<Schedule>),
}

/// What a restart needs of a consumer: settings, place, and unacknowledged deliveries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerState {
    /// Its name within the stream.
    pub name: Name,
    /// When it was made.
    pub created: Time,
    /// Its settings.
    pub settings: ConsumerSettings,
    /// The first message that it has not looked at.
    pub next: u64,
    /// The latest delivery.
    pub delivered: Position,
    /// The delivery up to which all are acknowledged.
    pub floor: Position,
    /// Sequence number, number of the latest delivery and number of deliveries of each message that is not
    /// acknowledged.
    pub pending: Vec<(u64, u64, u64)>,
    /// Messages to deliver before `next`.
    pub first_ones: Vec<u64>,
    /// Messages from `next` on that are acknowledged.
    pub done: Vec<u64>,
}

impl StreamRecord {
    /// The stream.
    #[must_use]
    pub fn queue(&self) -> DurableQueueId {
        match self {
            StreamRecord::Removed(queue, _)
            | StreamRecord::Mark(queue, ..)
            | StreamRecord::Consumer(queue, _)
            | StreamRecord::ConsumerGone(queue, _)
            | StreamRecord::Acked(queue, ..)
            | StreamRecord::Scheduled(queue, ..) => *queue,
        }
    }

    /// Encodes the record.
    #[must_use]
    pub fn record(&self) -> NewRecord {
        let kind = match self {
            StreamRecord::Removed(..) => REMOVED,
            StreamRecord::Mark(..) => MARK,
            StreamRecord::Consumer(..) => CONSUMER,
            StreamRecord::ConsumerGone(..) => CONSUMER_GONE,
            StreamRecord::Acked(..) => ACKED,
            StreamRecord::Scheduled(..) => SCHEDULED,
        };
        let mut out = vec![VERSION, kind];
        out.extend_from_slice(&self.queue().0.to_le_bytes());
        match self {
            StreamRecord::Removed(_, removed) => {
                push_ranges(&mut out, removed.len(), removed.iter().copied());
            }
            StreamRecord::Mark(_, next, created) => {
                out.extend_from_slice(&next.to_le_bytes());
                out.extend_from_slice(&created.0.to_le_bytes());
            }
            StreamRecord::Consumer(_, state) => push_consumer(&mut out, state),
            StreamRecord::ConsumerGone(_, name) => push_short(&mut out, name.as_bytes()),
            StreamRecord::Acked(_, name, acked) => {
                push_short(&mut out, name.as_bytes());
                push_ranges(&mut out, acked.len(), acked.iter().copied());
            }
            StreamRecord::Scheduled(_, sequence, last, schedule) => {
                out.extend_from_slice(&sequence.to_le_bytes());
                out.extend_from_slice(&last.0.to_le_bytes());
                push_schedule(&mut out, schedule);
            }
        }
        NewRecord::new(RecordKind::Stream, out)
    }

    /// Decodes a record.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &[u8]) -> Result<StreamRecord, RecordError> {
        let mut fields = Fields::of(payload, VERSION)?;
        let (kind, queue) = (fields.u8()?, DurableQueueId(fields.u64()?));
        Ok(match kind {
            REMOVED => StreamRecord::Removed(queue, ranges(&mut fields)?),
            MARK => StreamRecord::Mark(queue, fields.u64()?, Time(fields.u64()?)),
            CONSUMER => StreamRecord::Consumer(queue, Box::new(consumer(&mut fields)?)),
            CONSUMER_GONE => StreamRecord::ConsumerGone(queue, Name::new(fields.short()?)),
            ACKED => {
                let name = Name::new(fields.short()?);
                StreamRecord::Acked(queue, name, ranges(&mut fields)?)
            }
            SCHEDULED => {
                let (sequence, last) = (fields.u64()?, Time(fields.u64()?));
                StreamRecord::Scheduled(queue, sequence, last, Arc::new(schedule(&mut fields)?))
            }
            _ => return Err(RecordError::Unknown("kind of a stream's record")),
        })
    }
}

/// Creates the records of removed messages, which belong to one stream after the other.
#[must_use]
pub fn removed_records(removed: &[(DurableQueueId, u64)]) -> Vec<NewRecord> {
    let of_streams = removed.chunk_by(|one, other| one.0 == other.0);
    let pieces = of_streams.flat_map(|of_stream| of_stream.chunks(RECORD_ENTRIES_MAX));
    let record = |piece: &[(DurableQueueId, u64)]| {
        let queue = piece.first().map_or(DurableQueueId(0), |(queue, _)| *queue);
        StreamRecord::Removed(queue, ranges_of(piece.iter().map(|(_, sequence)| *sequence).collect()))
            .record()
    };
    pieces.map(record).collect()
}

fn push_consumer(out: &mut Vec<u8>, state: &ConsumerState) {
    push_short(out, state.name.as_bytes());
    out.extend_from_slice(&state.created.0.to_le_bytes());
    push_consumer_settings(out, &state.settings);
    let Position { consumer, stream } = state.delivered;
    let floor = state.floor;
    [state.next, consumer, stream, floor.consumer, floor.stream]
        .into_iter()
        .for_each(|place| push_number(out, place));
    push_number(out, state.pending.len() as u64);
    for (sequence, delivery, deliveries) in &state.pending {
        [*sequence, *delivery, *deliveries].into_iter().for_each(|number| push_number(out, number));
    }
    for list in [&state.first_ones, &state.done] {
        push_number(out, list.len() as u64);
        list.iter().for_each(|sequence| push_number(out, *sequence));
    }
}

fn consumer(fields: &mut Fields<'_>) -> Result<ConsumerState, RecordError> {
    let (name, created) = (Name::new(fields.short()?), Time(fields.u64()?));
    let settings = consumer_settings(fields)?;
    let next = number(fields)?;
    let mut place =
        || Ok::<Position, RecordError>(Position { consumer: number(fields)?, stream: number(fields)? });
    let (delivered, floor) = (place()?, place()?);
    let mut pending = Vec::new();
    for _ in 0..number(fields)? {
        pending.push((number(fields)?, number(fields)?, number(fields)?));
    }
    let (first_ones, done) = (numbers(fields)?, numbers(fields)?);
    Ok(ConsumerState { name, created, settings, next, delivered, floor, pending, first_ones, done })
}

fn numbers(fields: &mut Fields<'_>) -> Result<Vec<u64>, RecordError> {
    let mut all = Vec::new();
    for _ in 0..number(fields)? {
        all.push(number(fields)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::super::consumer_settings::tests::every_setting;
    use super::super::schedule::tests::schedules;
    use super::*;

    fn samples() -> Vec<StreamRecord> {
        let (queue, name) = (DurableQueueId(7), Name::from("c"));
        let state = ConsumerState {
            name: name.clone(),
            created: Time(9),
            settings: every_setting(),
            next: 300,
            delivered: Position { consumer: 5, stream: 299 },
            floor: Position { consumer: 2, stream: 200 },
            pending: vec![(201, 3, 1), (299, 5, 2)],
            first_ones: vec![7, 9],
            done: vec![u64::MAX],
        };
        vec![
            StreamRecord::Removed(queue, vec![(1, 5), (7, 7)]),
            StreamRecord::Mark(queue, u64::MAX, Time(5)),
            StreamRecord::Consumer(queue, Box::new(state)),
            StreamRecord::ConsumerGone(queue, name.clone()),
            StreamRecord::Acked(queue, name, vec![(3, 4)]),
            StreamRecord::Scheduled(queue, 12, Time(77), Arc::new(schedules().remove(1))),
        ]
    }

    #[test]
    fn decode_after_encode_is_identity_and_no_prefix_is_a_record() {
        for record in samples() {
            let bytes = record.record().payload;
            assert_eq!(StreamRecord::decode(&bytes).as_ref(), Ok(&record));
            for len in 0..bytes.len() {
                assert!(StreamRecord::decode(&bytes[..len]).is_err(), "{record:?} {len}");
            }
        }
        assert_eq!(StreamRecord::decode(&[1]), Err(RecordError::Version(1)));
    }

    #[test]
    fn removed_messages_are_recorded_by_stream_as_ranges() {
        let of = |queue, sequence| (DurableQueueId(queue), sequence);
        let records = removed_records(&[of(1, 3), of(1, 1), of(1, 2), of(1, 9), of(2, 5)]);
        let read: Vec<_> =
            records.iter().map(|record| StreamRecord::decode(&record.payload).unwrap()).collect();
        let expected = [
            StreamRecord::Removed(DurableQueueId(1), vec![(1, 3), (9, 9)]),
            StreamRecord::Removed(DurableQueueId(2), vec![(5, 5)]),
        ];
        assert_eq!(read, expected);
    }
}
