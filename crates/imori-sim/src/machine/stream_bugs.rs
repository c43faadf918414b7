//! Bugs planted in the records of streams, as the broker writes them and as a start reads them.

use imori_core::record::{NewRecord, RecordKind, StreamRecord};

use crate::planted::Bug;

/// The records of a cell or of the checkpointer, as a planted bug would write them.
pub(crate) fn written_streams(bug: Option<Bug>, records: Vec<NewRecord>) -> Vec<NewRecord> {
    match bug {
        Some(bug) => records.into_iter().filter_map(|record| written(bug, record)).collect(),
        None => records,
    }
}

fn written(bug: Bug, record: NewRecord) -> Option<NewRecord> {
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
