//! The records of a stream's state, which a checkpoint renews so that the journal can be freed.

use std::sync::Arc;

use crate::confirm::{Confirm, Lsn, Progress};
use crate::id::DurableQueueId;
use crate::name::Name;
use crate::queue::Queue;
use crate::record::{ConsumerState, NewRecord, StreamRecord};
use crate::stream::{Answer, Answered, StreamConsumer};

impl Queue {
    /// Records the state of a consumer, if both it and the stream outlive the broker.
    pub(crate) fn record_consumer(&mut self, name: &[u8], append: impl FnOnce(NewRecord) -> Lsn) {
        let Some(durability) = self.durability else { return };
        let consumer = self.stream.as_mut().and_then(|stream| stream.consumers.touch(name));
        if let Some(consumer) = consumer.filter(|consumer| consumer.settings.is_durable) {
            consumer.recorded = append(state_record(durability.id, consumer));
            consumer.is_changed = false;
        }
    }

    /// The record that a consumer was deleted, if it was recorded.
    pub(crate) fn consumer_gone_record(&self, consumer: &StreamConsumer) -> Option<NewRecord> {
        let durability = self.durability.filter(|_| consumer.recorded != Lsn::NONE)?;
        Some(StreamRecord::ConsumerGone(durability.id, consumer.name.clone()).record())
    }

    /// Answers an acknowledgement once `confirm` is reached.
    pub(crate) fn answer_acked(&mut self, confirm: Confirm, to: &[u8]) {
        self.answer_at(confirm, to, Answered::Acked);
    }

    /// Sends an answer in the form of its protocol once `confirm` is reached, behind all earlier answers of the stream.
    pub fn answer_from_stream(&mut self, confirm: Confirm, to: &[u8], form: Vec<u8>) {
        self.answer_at(confirm, to, Answered::Form(form.into_boxed_slice()));
    }

    fn answer_at(&mut self, confirm: Confirm, to: &[u8], what: Answered) {
        if let Some(stream) = &mut self.stream {
            stream.answer_at(confirm, Answer { to: Name::new(to), what });
            stream.reach(Progress::default());
        }
    }

    /// Records when a new stream was made.
    pub fn record_stream(&mut self, append: impl FnOnce(NewRecord) -> Lsn) {
        let Some((stream, durability)) = self.stream.as_mut().zip(self.durability) else { return };
        let mark = StreamRecord::Mark(durability.id, self.next_sequence, stream.created);
        stream.marked = append(mark.record());
    }

    /// Records when a restored stream was made, if a kill came before the record of that. Otherwise each restart would
    /// make it anew.
    pub(crate) fn record_restored_stream(&mut self, append: impl FnOnce(NewRecord) -> Lsn) {
        if self.stream.as_ref().is_some_and(|stream| stream.marked == Lsn::NONE) {
            self.record_stream(append);
        }
    }

    /// Records one part of a stream's state again, if its record is below `floor` or out of date. Returns whether
    /// there was any.
    pub(crate) fn renew_stream(&mut self, floor: Lsn, append: impl FnOnce(NewRecord) -> Lsn) -> bool {
        let Some((stream, durability)) = self.stream.as_mut().zip(self.durability) else { return false };
        if stream.marked < floor {
            let mark = StreamRecord::Mark(durability.id, self.next_sequence, stream.created);
            stream.marked = append(mark.record());
            return true;
        }
        if let Some((sequence, scheduled)) = stream.roles.recorded_below(floor) {
            let schedule = Arc::clone(&scheduled.schedule);
            scheduled.recorded =
                append(StreamRecord::Scheduled(durability.id, sequence, scheduled.last, schedule).record());
            return true;
        }
        let is_due = |consumer: &&mut StreamConsumer| {
            consumer.settings.is_durable && (consumer.recorded < floor || consumer.is_changed)
        };
        let Some(consumer) = stream.consumers.values_mut().find(is_due) else { return false };
        consumer.recorded = append(state_record(durability.id, consumer));
        consumer.is_changed = false;
        true
    }

    /// The lowest record that has a part of a stream's state.
    pub(crate) fn stream_floor(&self) -> Option<Lsn> {
        let stream = self.stream.as_ref().filter(|_| self.durability.is_some())?;
        let consumers = stream.consumers.values().map(|consumer| consumer.recorded);
        consumers.chain([stream.marked]).chain(stream.roles.floor()).filter(|lsn| *lsn != Lsn::NONE).min()
    }
}

fn state_record(queue: DurableQueueId, consumer: &StreamConsumer) -> NewRecord {
    StreamRecord::Consumer(queue, Box::new(ConsumerState::of(consumer))).record()
}

impl ConsumerState {
    /// The state of a consumer now.
    pub(crate) fn of(consumer: &StreamConsumer) -> ConsumerState {
        let pending = consumer
            .pending
            .iter()
            .map(|(sequence, pending)| (*sequence, pending.number, pending.deliveries));
        ConsumerState {
            name: consumer.name.clone(),
            created: consumer.created,
            settings: consumer.settings.clone(),
            next: consumer.next,
            delivered: consumer.delivered,
            floor: consumer.floor,
            pending: pending.collect(),
            first_ones: consumer.first_ones.iter().copied().collect(),
            done: consumer.done.iter().copied().collect(),
        }
    }
}
