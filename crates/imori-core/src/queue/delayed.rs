//! The messages of a queue that nobody is given yet, by the time when they are due.
//!
//! They are in the queue as any other, on disk too, and those of a publisher's own name can be
//! cancelled until then. What is due is the queue's to see: here nothing knows the time.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::size_of;

use super::entry::Entry;
use crate::message::Property;
use crate::time::Time;

/// Bytes of an element of a tree besides the element: its nodes are two thirds full.
const TREE_OVERHEAD: usize = 16;

/// When a message is due, and the sequence number that it got when it came.
type Place = (Time, u64);

/// Messages that wait for their time: the first that is due first, then by their coming.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    by_due: BTreeMap<Place, Entry>,
    /// Those that have a name.
    by_name: BTreeSet<(Box<[u8]>, Place)>,
    body_bytes: u64,
    charge: usize,
}

impl Delayed {
    pub(super) fn len(&self) -> usize {
        self.by_due.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    /// Bytes of all bodies that wait here.
    pub(super) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes of memory that these messages keep besides the messages.
    pub(super) fn charge(&self) -> usize {
        self.charge
    }

    /// When the first is due.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.by_due.first_key_value().map(|((due, _), _)| *due)
    }

    pub(super) fn insert(&mut self, due: Time, entry: Entry) {
        self.charge += charge(&entry);
        self.body_bytes += entry.body_bytes();
        let place = (due, entry.envelope.sequence);
        if let Some(name) = name(&entry) {
            self.by_name.insert((name.into(), place));
        }
        self.by_due.insert(place, entry);
    }

    /// Takes the first message that is due by `now`.
    pub(super) fn pop_due(&mut self, now: Time) -> Option<Entry> {
        let (place, _) = self.by_due.first_key_value().filter(|((due, _), _)| *due <= now)?;
        self.remove(*place)
    }

    /// Takes the message of this name that is due first.
    pub(super) fn pop_named(&mut self, name: &[u8]) -> Option<Entry> {
        let first = (Box::from(name), (Time::default(), 0));
        let (_, place) = self.by_name.range(first..).next().filter(|(other, _)| **other == *name)?;
        self.remove(*place)
    }

    fn remove(&mut self, place: Place) -> Option<Entry> {
        let entry = self.by_due.remove(&place)?;
        if let Some(name) = name(&entry) {
            self.by_name.remove(&(name.into(), place));
        }
        self.body_bytes -= entry.body_bytes();
        self.charge -= charge(&entry);
        Some(entry)
    }
}

/// What its publisher calls it.
fn name(entry: &Entry) -> Option<&[u8]> {
    entry.message.view().property(Property::MessageId)
}

fn charge(entry: &Entry) -> usize {
    let named = |name: &[u8]| size_of::<(Box<[u8]>, Place)>() + TREE_OVERHEAD + name.len();
    Entry::CHARGE + size_of::<Place>() + TREE_OVERHEAD + name(entry).map_or(0, named)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::confirm::Lsn;
    use crate::memory::Gauge;
    use crate::message::{Address, Envelope, Head, Message, MessageView, OriginId, Span};

    fn entry(sequence: u64, name: &str, body: &str) -> Entry {
        let mut head = Head::new(OriginId::BROKER);
        head.set(Property::MessageId, Span::new(0, name.len()).expect("it is short"));
        let view = MessageView { head: &head, text: name.as_bytes(), body: body.as_bytes() };
        let envelope = Envelope {
            address: Arc::new(Address::new(b"", b"q")),
            sequence,
            lsn: Lsn::NONE,
            deadline: None,
            deaths: None,
            failures: 0,
            is_redelivered: false,
            priority: 0,
        };
        Entry::new(Message::store(&view, None, &Gauge::default()), envelope)
    }

    /// The sequence numbers of what is due by then.
    fn due(delayed: &mut Delayed, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| delayed.pop_due(Time(now))).map(|entry| entry.envelope.sequence).collect()
    }

    #[test]
    fn messages_leave_when_they_are_due_and_then_as_they_came() {
        let mut delayed = Delayed::default();
        for (sequence, at) in [(1, 30), (2, 10), (3, 20), (4, 10)] {
            delayed.insert(Time(at), entry(sequence, "", "body"));
        }
        assert_eq!((delayed.len(), delayed.body_bytes(), delayed.next_due()), (4, 16, Some(Time(10))));
        for (now, expected) in [(9, &[][..]), (10, &[2, 4]), (29, &[3]), (99, &[1])] {
            assert_eq!(due(&mut delayed, now), expected, "at {now}");
        }
        assert_eq!((delayed.is_empty(), delayed.body_bytes(), delayed.charge()), (true, 0, 0));
    }

    #[test]
    fn a_name_finds_its_messages_and_no_others() {
        let mut delayed = Delayed::default();
        for (sequence, at, name) in [(1, 9, "a"), (2, 5, "a"), (3, 1, "ab"), (4, 2, ""), (5, 3, "b")] {
            delayed.insert(Time(at), entry(sequence, name, ""));
        }
        for (name, expected) in
            [("", None), ("c", None), ("a", Some(2)), ("a", Some(1)), ("a", None), ("ab", Some(3))]
        {
            let found = delayed.pop_named(name.as_bytes()).map(|entry| entry.envelope.sequence);
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(due(&mut delayed, 9), [4, 5]);
        assert_eq!((delayed.by_name.len(), delayed.charge()), (0, 0));
    }
}
