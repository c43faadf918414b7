//! The consumers of a stream: made, changed and deleted by clients, and settled by their readers.

use std::collections::VecDeque;

use crate::entries::Part;
use crate::index::Filter;
use crate::name::Name;
use crate::queue::{Effects, Queue};
use crate::stream::{
    ConsumerSettings, Pace, Position, PullEnd, PullRequest, ResetRefusal, Retention, Settlement, Start,
    Stream, StreamConsumer,
};
use crate::time::Time;

use super::outlet::Outlet;
use super::requests::end;

impl Queue {
    /// Makes a consumer of a stream, in the place of one with its name.
    pub fn add_stream_consumer(&mut self, name: &Name, settings: ConsumerSettings, now: Time) {
        let Some(stream) = &self.stream else { return };
        let (next, first_ones) = self.starts_at(stream, settings.start, &settings.filter);
        let unread = match first_ones.is_empty() {
            true => stream.index.count_from(&settings.filter, next),
            false => first_ones.len() as u64 + stream.index.count_from(&settings.filter, next),
        };
        let pace = Pace::of(&settings, self.last_sequence(), stream.settings.message_bytes_max);
        let mut consumer = StreamConsumer::new(name.clone(), settings, (next, first_ones), unread, now);
        consumer.pace = pace;
        if let Some(stream) = &mut self.stream {
            stream.consumers.insert(consumer);
        }
    }

    /// Changes the settings of a consumer of a stream; its place in the stream stays.
    pub fn change_stream_consumer(&mut self, name: &[u8], settings: ConsumerSettings) {
        let last = self.last_sequence();
        let Some(stream) = &mut self.stream else { return };
        let Some(consumer) = stream.consumers.touch(name) else { return };
        if consumer.settings.push != settings.push {
            consumer.pace = Pace::of(&settings, last, stream.settings.message_bytes_max);
        }
        if consumer.settings.filter != settings.filter {
            consumer.unread = stream.index.count_from(&settings.filter, consumer.next);
        }
        consumer.requests.set_policy(settings.request_policy);
        consumer.settings = settings;
        consumer.is_changed = true;
    }

    /// Deletes a consumer of a stream; returns it. Messages that it alone wanted go.
    pub(crate) fn remove_stream_consumer(
        &mut self,
        name: &[u8],
        outlet: &mut impl Outlet,
        effects: &mut Effects,
    ) -> Option<StreamConsumer> {
        let stream = self.stream.as_mut()?;
        let mut consumer = stream.consumers.remove(name)?;
        for request in consumer.requests.take_all() {
            end(&request, PullEnd::ConsumerDeleted, outlet);
        }
        if stream.settings.retention == Retention::Interest {
            let all = stream.index.sequences_of(&consumer.settings.filter);
            self.retain_wanted(all, effects);
        }
        Some(consumer)
    }

    /// The unacknowledged delivery of a message: its place, its number of deliveries, and when it was.
    pub(crate) fn pending_delivery(&self, name: &[u8], sequence: u64) -> Option<(Position, u64, Time)> {
        let consumer = self.stream.as_ref()?.consumers.get(name)?;
        let pending = consumer.pending.get(&sequence)?;
        let wait = consumer.settings.wait_of(pending.deliveries);
        let wait = u64::try_from(wait.as_micros()).unwrap_or(u64::MAX);
        let place = Position { consumer: pending.number, stream: sequence };
        Some((place, pending.deliveries, Time(pending.due.0.saturating_sub(wait))))
    }

    /// Settles a delivery of a consumer; `false` if there is no such consumer.
    pub fn settle_in_stream(
        &mut self,
        name: &[u8],
        sequence: u64,
        settlement: Settlement,
        now: Time,
        effects: &mut Effects,
    ) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let Some(consumer) = stream.consumers.touch(name) else { return false };
        let mut done = consumer.settle(sequence, settlement, now);
        if matches!(settlement, Settlement::Ack | Settlement::Term) && consumer.may_be_restored(sequence) {
            let subject = stream.index.subject(sequence);
            let is_its = subject.is_some_and(|subject| consumer.settings.filter.takes(subject));
            if is_its && consumer.acknowledge_restored(sequence) {
                done.push(sequence);
            }
        }
        if settlement == Settlement::Ack {
            self.activity.accepted += done.len() as u64;
        }
        if !done.is_empty() {
            let name = consumer.name.clone();
            if let Some(durability) = self.durability.filter(|_| consumer.settings.is_durable) {
                effects.rare_mut().acked.push((durability.id, name, done.clone()));
            }
        }
        self.retain_wanted(done, effects);
        true
    }

    /// Notes a reader's answer to a request of flow control; `false` if there is no such consumer.
    pub fn answer_flow_control(
        &mut self,
        name: &[u8],
        number: u64,
        now: Time,
        effects: &mut Effects,
    ) -> bool {
        let Some(stream) = &mut self.stream else { return false };
        let Some(consumer) = stream.consumers.touch(name) else { return false };
        let up_to = consumer.pace.as_mut().and_then(|pace| pace.answered(number));
        let is_acked = consumer.settings.push.as_ref().is_some_and(|push| push.is_acked_by_flow);
        match up_to.filter(|_| is_acked) {
            Some(up_to) => self.settle_in_stream(name, up_to, Settlement::Ack, now, effects),
            None => true,
        }
    }

    /// Adds a request for messages to a consumer.
    ///
    /// # Errors
    /// The end of a request that cannot wait.
    pub fn request_from_stream(
        &mut self,
        name: &[u8],
        request: &PullRequest,
        now: Time,
    ) -> Result<(), PullEnd> {
        let consumer = self.stream.as_mut().and_then(|stream| stream.consumers.touch(name));
        let consumer = consumer.ok_or(PullEnd::ConsumerDeleted)?;
        consumer.admit(request, now)?;
        consumer.requests.add(request.clone());
        Ok(())
    }

    /// Takes the pin from the client that has it; `false` if none has.
    pub fn unpin_stream_consumer(&mut self, name: &[u8]) -> bool {
        let consumer = self.stream.as_mut().and_then(|stream| stream.consumers.touch(name));
        consumer.is_some_and(|consumer| consumer.pin.take().is_some())
    }

    /// Moves a consumer to a message of the stream, or back to the first one that is not acknowledged. Returns the
    /// number of the message.
    ///
    /// # Errors
    /// [`ResetRefusal`]; `None` if there is no such consumer.
    pub fn reset_stream_consumer(
        &mut self,
        name: &[u8],
        to: Option<u64>,
        effects: &mut Effects,
    ) -> Option<Result<u64, ResetRefusal>> {
        let stream = self.stream.as_ref()?;
        let consumer = stream.consumers.get(name)?;
        let next = match (to, consumer.settings.start) {
            (None, _) => consumer.floor.stream + 1,
            (Some(to), Start::First) => to,
            (Some(to), Start::Sequence(first)) if to < first => {
                return Some(Err(ResetRefusal::BelowSequence));
            }
            (Some(to), Start::Time(time))
                if self.first_since(stream, time).is_some_and(|first| to < first) =>
            {
                return Some(Err(ResetRefusal::BelowTime));
            }
            (Some(to), Start::Sequence(_) | Start::Time(_)) => to,
            (Some(_), Start::Last | Start::LastOfEachSubject | Start::New) => {
                return Some(Err(ResetRefusal::NotAllowed));
            }
        };
        let next = next.max(1);
        let unread = stream.index.count_from(&consumer.settings.filter, next);
        let mut passed = Vec::new();
        if stream.settings.retention == Retention::Interest {
            passed = stream.index.sequences_of(&consumer.settings.filter);
            passed.retain(|sequence| *sequence < next);
        }
        self.stream.as_mut()?.consumers.touch(name)?.reset(next, unread);
        self.retain_wanted(passed, effects);
        Some(Ok(next))
    }

    /// The names of consumers without interest for too long.
    pub(crate) fn idle_stream_consumers(&self, now: Time) -> Vec<Name> {
        let consumers = self.stream.iter().flat_map(|stream| stream.consumers.values());
        consumers
            .filter(|consumer| consumer.is_idle_too_long(now))
            .map(|consumer| consumer.name.clone())
            .collect()
    }

    /// The first number that a consumer looks at, and the messages that it delivers before.
    pub(super) fn starts_at(&self, stream: &Stream, start: Start, filter: &Filter) -> (u64, VecDeque<u64>) {
        let end = self.next_sequence;
        let first = stream.index.first().unwrap_or(end);
        let none = VecDeque::new();
        match start {
            Start::First => (first, none),
            Start::New => (end, none),
            Start::Sequence(sequence) => (sequence.clamp(first, end), none),
            Start::Last => {
                let last = stream.index.last_of_each(filter, u64::MAX).last().copied();
                (last.unwrap_or(end), none)
            }
            Start::LastOfEachSubject => (end, stream.index.last_of_each(filter, u64::MAX).into()),
            Start::Time(time) => (self.first_since(stream, time).unwrap_or(end), none),
        }
    }

    /// The first message that came at this time or later. If it is on disk, a message before it: a reader that starts
    /// there skips those that are too old.
    pub(super) fn first_since(&self, stream: &Stream, time: Time) -> Option<u64> {
        let mut on_disk = None;
        for part in &self.ready.lanes().next()?.parts {
            let Part::Memory(run) = part else {
                on_disk = on_disk.or(Some(part.start()));
                continue;
            };
            // Times rise with the numbers.
            match run.from(0).find(|(_, entry)| entry.envelope.since >= time) {
                Some((place, _)) if on_disk.is_some() && run.first_place() == Some(place) => break,
                Some((_, entry)) => return Some(entry.envelope.sequence),
                None if run.is_empty() => {}
                None => on_disk = None,
            }
        }
        on_disk.and_then(|start| stream.index.next(&Filter::all(), start))
    }
}
