//! Puts the contents of an archive into a new stream.

use crate::confirm::Lsn;
use crate::index::Filter;
use crate::queue::{Effects, Queue};
use crate::record::{ConsumerState, NewRecord};
use crate::stream::Retention;
use crate::time::Time;

impl Queue {
    /// Whether the messages of an archive are being put into the stream.
    pub fn is_restoring(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_restoring)
    }

    /// Prepares a new stream for the messages of an archive.
    pub(crate) fn begin_restore(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.is_restoring = true;
        }
    }

    /// Leaves out the sequence numbers before this one; `false` if the stream has had it already.
    pub(crate) fn skip_to(&mut self, sequence: u64) -> bool {
        let is_ahead = sequence >= self.next_sequence;
        self.next_sequence = self.next_sequence.max(sequence);
        is_ahead
    }

    /// Gives a restored stream its consumers. The next message gets the number `next`; from now on the stream is like
    /// any other.
    pub(crate) fn end_restore(
        &mut self,
        next: u64,
        consumers: Vec<ConsumerState>,
        now: Time,
        mut append: impl FnMut(NewRecord) -> Lsn,
        effects: &mut Effects,
    ) {
        self.skip_to(next);
        self.ready_end = self.next_sequence;
        let next = self.next_sequence;
        let Some(stream) = &mut self.stream else { return };
        stream.is_restoring = false;
        // The last messages may be missing, so that nothing else shows the number to readers.
        stream.visible_end = next;
        self.record_stream(&mut append);
        for state in consumers {
            let name = state.name.clone();
            self.restore_consumer(state, Lsn::NONE, &[], now);
            self.record_consumer(name.as_bytes(), &mut append);
        }
        let Some(stream) = &self.stream else { return };
        if stream.settings.retention == Retention::Interest {
            let all = stream.index.sequences_of(&Filter::all());
            self.retain_wanted(all, effects);
        }
    }

    /// The states of the consumers of a stream.
    pub fn consumer_states(&self) -> Vec<ConsumerState> {
        self.stream.iter().flat_map(|stream| stream.consumers.values()).map(ConsumerState::of).collect()
    }
}
