//! The consumers of a stream: made, changed and deleted by clients, and settled by their readers.

use std::collections::VecDeque;

use crate::entries::Part;
use crate::name::Name;
use crate::queue::{Effects, Queue};
use crate::stream::{
    ConsumerSettings, Filter, PullEnd, PullRequest, Retention, Settlement, Start, Stream, StreamConsumer,
};
use crate::time::Time;

use super::consume::{Outlet, end};

impl Queue {
    /// Makes a consumer of a stream, in the place of one with its name.
    pub fn add_stream_consumer(&mut self, name: &Name, settings: ConsumerSettings, now: Time) {
        let Some(stream) = &self.stream else { return };
        let (next, first_ones) = self.starts_at(stream, settings.start, &settings.filter);
        let unread = match first_ones.is_empty() {
            true => stream.index.count_from(&settings.filter, next),
            false => first_ones.len() as u64 + stream.index.count_from(&settings.filter, next),
        };
        let consumer = StreamConsumer::new(name.clone(), settings, (next, first_ones), unread, now);
        if let Some(stream) = &mut self.stream {
            stream.consumers.insert(name.clone(), consumer);
        }
    }

    /// Changes the settings of a consumer of a stream; its place in the stream stays.
    pub fn change_stream_consumer(&mut self, name: &[u8], settings: ConsumerSettings) {
        let Some(stream) = &mut self.stream else { return };
        let Some(consumer) = stream.consumers.get_mut(name) else { return };
        if consumer.settings.filter != settings.filter {
            consumer.unread = stream.index.count_from(&settings.filter, consumer.next);
        }
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
        for request in consumer.requests.take_if(|_| true) {
            end(&request, PullEnd::ConsumerDeleted, outlet);
        }
        if stream.settings.retention == Retention::Interest {
            let all = stream.index.sequences_of(&consumer.settings.filter);
            self.retain_wanted(all, effects);
        }
        Some(consumer)
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
        let Some(consumer) = stream.consumers.get_mut(name) else { return false };
        let done = consumer.settle(sequence, settlement, now);
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

    /// Adds a request for messages to a consumer; gives it back if too many wait, or there is no such consumer.
    pub fn request_from_stream(
        &mut self,
        name: &[u8],
        request: PullRequest,
        now: Time,
    ) -> Result<(), PullRequest> {
        let consumer = self.stream.as_mut().and_then(|stream| stream.consumers.get_mut(name));
        match consumer {
            Some(consumer) => consumer.request(request, now),
            None => Err(request),
        }
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

    /// Number of messages of a stream whose subject a filter takes.
    pub fn count_in_stream(&self, filter: &Filter) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.index.count_from(filter, 0))
    }
}
