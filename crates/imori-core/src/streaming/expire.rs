//! Messages of a stream whose time is over.

use super::remove::Whereabouts;
use crate::entries::Entry;
use crate::index::Filter;
use crate::name::Name;
use crate::queue::{Effects, Queue};
use crate::time::Time;

impl Queue {
    /// Removes the messages of a stream whose time is over.
    pub(crate) fn expire_in_stream(&mut self, now: Time, effects: &mut Effects) {
        while let Some(stream) = &mut self.stream {
            let Some((due, sequence)) = stream.ttls.first().copied().filter(|(due, _)| *due <= now) else {
                break;
            };
            stream.ttls.remove(&(due, sequence));
            self.expire_message(sequence, effects);
        }
        let Some(ttl) = self.settings.message_ttl else { return };
        while let Some((sequence, stored)) = self.first_ageing() {
            if stored.after(ttl) > now || !self.expire_message(sequence, effects) {
                return;
            }
        }
    }

    /// Removes an expired message; the subject gets a marker if it was its last one.
    fn expire_message(&mut self, sequence: u64, effects: &mut Effects) -> bool {
        if let Some(stream) = &mut self.stream
            && stream.settings.marker_ttl.is_some()
            && !stream.roles.of(sequence).is_marker
            && let Some(subject) = stream.index.subject(sequence)
            && stream.index.count_of(subject) == 1
        {
            let subject = Name::new(subject);
            stream.unmarked.push(subject);
        }
        self.remove_message(sequence, effects)
    }

    /// The first message of a stream that goes by age, and when it came; `None` if there is none, or it is on disk.
    pub(crate) fn first_ageing(&mut self) -> Option<(u64, Time)> {
        let facts = |entry: &Entry| (entry.envelope.sequence, entry.envelope.since);
        let stream = self.stream.as_mut()?;
        if stream.roles.is_empty() {
            return self.ready.fronts().next().map(facts);
        }
        let mut next = stream.index.next(&Filter::all(), stream.ageless_end)?;
        while stream.roles.of(next).never_expires {
            stream.ageless_end = next + 1;
            next = stream.index.next(&Filter::all(), stream.ageless_end)?;
        }
        match self.whereabouts(next) {
            Whereabouts::Memory => self.in_memory(next).as_ref().map(facts),
            Whereabouts::Disk(page) => {
                self.sought.push((0, page));
                None
            }
            Whereabouts::Nowhere => None,
        }
    }

    /// When a message of a stream goes by age.
    pub(crate) fn next_to_age(&mut self) -> Option<Time> {
        let ttl = self.settings.message_ttl?;
        self.first_ageing().map(|(_, stored)| stored.after(ttl))
    }
}
