//! Bugs planted in the records of streams, as the broker writes them and as a start reads them.

use std::borrow::Cow;
use std::sync::Arc;

use imori_core::id::DurableQueueId;
use imori_core::message::AddressView;
use imori_core::record::{
    InStreams, MessageRecord, NewRecord, RecordError, RecordKind, StreamRecord, encode_for_streams,
};
use imori_core::stream::Removals;

use crate::planted::Bug;

/// The records of a cell or of the checkpointer, as a planted bug would write them.
pub(crate) fn written_streams(bug: Option<Bug>, records: Vec<NewRecord>) -> Vec<NewRecord> {
    match bug {
        Some(bug) => records.into_iter().filter_map(|record| written(bug, record)).collect(),
        None => records,
    }
}

fn written(bug: Bug, record: NewRecord) -> Option<NewRecord> {
    if record.kind == RecordKind::Message {
        let payload = match bug {
            Bug::StreamDropsUnrecorded => dropping(&record.payload, |dropped| dropped.clear()),
            Bug::StreamDropsMiscounted => {
                dropping(&record.payload, |dropped| dropped.extend(dropped.last().map(|last| last + 1)))
            }
            Bug::StreamNumberAgain => numbered_again(&record.payload),
            _ => return Some(record),
        };
        return Some(NewRecord { payload: payload.expect("the core wrote it"), ..record });
    }
    if record.kind != RecordKind::Stream {
        return Some(record);
    }
    let read = StreamRecord::decode(&record.payload).expect("the core wrote it");
    match (bug, read) {
        (Bug::StreamRemovalUnrecorded, StreamRecord::Removed(..))
        | (Bug::StreamAckUnrecorded, StreamRecord::Acked(..))
        | (Bug::ConsumerUnrecorded, StreamRecord::Consumer(..))
        | (Bug::ConsumerEndUnrecorded, StreamRecord::ConsumerGone(..)) => None,
        (Bug::StreamPurgeCut, StreamRecord::Removed(queue, mut removed)) => {
            if let Some((first, last)) = removed.last_mut() {
                *last = (*first).max(last.saturating_sub(1));
            }
            Some(StreamRecord::Removed(queue, removed).record())
        }
        (Bug::StreamAckMisnumbered, StreamRecord::Acked(queue, name, mut acked)) => {
            acked.iter_mut().for_each(|(_, last)| *last += 1);
            Some(StreamRecord::Acked(queue, name, acked).record())
        }
        (Bug::FloorAheadOfPending, StreamRecord::Consumer(queue, mut state)) => {
            state.pending.clear();
            state.floor = state.delivered;
            Some(StreamRecord::Consumer(queue, state).record())
        }
        _ => Some(record),
    }
}

/// The record of a message with other messages that give way to it.
fn dropping(payload: &[u8], change: impl Fn(&mut Vec<u64>)) -> Result<Vec<u8>, RecordError> {
    let record = MessageRecord::decode(payload)?;
    if record.dropped.is_empty() {
        return Ok(payload.to_vec());
    }
    let streams = record.dropped.iter().map(|(stream, ranges)| {
        let mut dropped = ranges.iter().flat_map(|(first, last)| *first..=*last).collect();
        change(&mut dropped);
        let ended_schedule = record.ended_schedule.map(Box::from);
        (*stream, Removals { rollup: record.rollup, ended_schedule, dropped })
    });
    let streams: Vec<_> = streams.collect();
    let removals: Vec<_> = streams.iter().map(|(stream, removals)| (*stream, removals)).collect();
    Ok(encoded(&record, &record.sequences, &removals))
}

/// The record of a message with the numbers before its own.
fn numbered_again(payload: &[u8]) -> Result<Vec<u8>, RecordError> {
    let record = MessageRecord::decode(payload)?;
    if record.sequences.is_empty() || !record.dropped.is_empty() {
        return Ok(payload.to_vec());
    }
    let before = |(stream, sequence): &(DurableQueueId, u64)| (*stream, sequence.saturating_sub(1).max(1));
    let sequences: Vec<_> = record.sequences.iter().map(before).collect();
    Ok(encoded(&record, &sequences, &[]))
}

fn encoded(
    record: &MessageRecord<'_>,
    sequences: &[(DurableQueueId, u64)],
    removals: &[(DurableQueueId, &Removals)],
) -> Vec<u8> {
    let in_streams = InStreams { sequences, removals, schedule: record.schedule.as_deref() };
    let address = Arc::new(record.address.clone());
    let (view, address) = (record.view(), AddressView::new(&address));
    let queues = (record.queues.as_slice(), in_streams);
    encode_for_streams(&view, &address, record.deaths.as_deref(), queues, record.time)
}

/// The record of a message, as a start under a planted bug reads it.
pub(crate) fn read_message(bug: Option<Bug>, payload: &[u8]) -> Result<Cow<'_, [u8]>, RecordError> {
    match bug {
        Some(Bug::StreamDropsUnread) => dropping(payload, |dropped| dropped.clear()).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(payload)),
    }
}

/// Whether a start under a planted bug ignores a record of a stream.
pub(crate) fn is_unread(bug: Option<Bug>, payload: &[u8]) -> bool {
    matches!(
        (bug, StreamRecord::decode(payload)),
        (Some(Bug::StreamRemovalUnread), Ok(StreamRecord::Removed(..)))
            | (Some(Bug::StreamMarkUnread), Ok(StreamRecord::Mark(..)))
            | (Some(Bug::ConsumerForgotten), Ok(StreamRecord::Consumer(..)))
            | (Some(Bug::StreamAckUnread), Ok(StreamRecord::Acked(..)))
    )
}
