//! Messages of a stream whose time is over.

use super::remove::Whereabouts;
use crate::entries::PageId;
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
            && !stream.roles.is_marker(sequence)
            && let Some(subject) = stream.index.subject(sequence)
            && stream.index.count_of(subject) == 1
        {
            let subject = Name::new(subject);
            stream.unmarked.push(subject);
        }
        self.remove_message(sequence, effects)
    }

    /// The first message of a stream that goes by age, and when it came; `None` if there is none, or if its page has to
    /// be read to know.
    pub(crate) fn first_ageing(&mut self) -> Option<(u64, Time)> {
        self.note_first_ageing();
        let first = self.first_ageing_sequence()?;
        self.stream.as_ref()?.ageing.filter(|(sequence, _)| *sequence == first)
    }

    /// Remembers when the first message that goes by age came, if it is in memory.
    pub(crate) fn note_first_ageing(&mut self) {
        let Some(first) = self.first_ageing_sequence() else { return };
        let Some(stream) = &mut self.stream else { return };
        if !stream.roles.has_no_marks() {
            stream.ageless_end = first;
        }
        if stream.ageing.is_some_and(|(sequence, _)| sequence == first) {
            return;
        }
        let front = self.ready.fronts().next().map(|front| (front.envelope.sequence, front.envelope.since));
        let found = match front.filter(|(sequence, _)| *sequence == first) {
            Some(front) => Some(front),
            None => self.in_memory(first).map(|entry| (entry.envelope.sequence, entry.envelope.since)),
        };
        if let (Some(stream), Some(found)) = (&mut self.stream, found) {
            stream.ageing = Some(found);
        }
    }

    /// The number of the first message that goes by age.
    fn first_ageing_sequence(&self) -> Option<u64> {
        let stream = self.stream.as_ref()?;
        if stream.roles.has_no_marks() {
            return stream.index.first();
        }
        let mut next = stream.index.next(&Filter::all(), stream.ageless_end)?;
        while stream.roles.never_expires(next) {
            next = stream.index.next(&Filter::all(), next + 1)?;
        }
        Some(next)
    }

    /// The page of the first message that goes by age, if it has to be read to know when the message came.
    pub(crate) fn page_of_first_ageing(&self) -> Option<PageId> {
        self.settings.message_ttl?;
        let first = self.first_ageing_sequence()?;
        if self.stream.as_ref()?.ageing.is_some_and(|(sequence, _)| sequence == first) {
            return None;
        }
        match self.whereabouts(first) {
            Whereabouts::Disk(page) => Some(page),
            Whereabouts::Memory | Whereabouts::Nowhere => None,
        }
    }

    /// When a message of a stream goes by age.
    pub(crate) fn next_to_age(&mut self) -> Option<Time> {
        let ttl = self.settings.message_ttl?;
        self.first_ageing().map(|(_, stored)| stored.after(ttl))
    }
}
