//! The delayed messages of a queue, by due time.
//!
//! Until it is due, a message can be cancelled by its message id. A message that is on disk alone has a stub
//! here. Nothing here knows the time; the queue asks for the messages that are due.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::size_of;

use super::entry::Entry;
use super::pages::{DuePlace, PageId, PagePlace, Pages};
use super::priority_lane::Front;
use crate::confirm::Lsn;
use crate::message::Property;
use crate::time::Time;

/// Bytes of an element of a tree besides the element; the nodes are two thirds full.
const TREE_OVERHEAD: usize = 16;

/// Bytes charged for an entry in memory, besides its message.
const ENTRY_CHARGE: usize = Entry::CHARGE + size_of::<DuePlace>() + TREE_OVERHEAD;

/// Bytes charged for a message on disk, including its place in its page.
const STUB_CHARGE: usize = size_of::<Stub>() + 2 * size_of::<DuePlace>() + TREE_OVERHEAD;

/// Number of pages read at once; the messages that are due first are in few pages.
const ASKED_MAX: usize = 4;

/// Number of stubs inspected to find these pages.
const LOOKED_MAX: usize = 1024;

/// A message that is on disk alone, or about to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stub {
    pub(crate) page: PageId,
    pub(crate) lsn: Lsn,
    pub(crate) body_bytes: u64,
    /// The message may have been delivered before the restart.
    pub(crate) is_redelivered: bool,
}

/// A delayed message that was taken out.
#[derive(Debug)]
pub(crate) enum TakenOut {
    /// The message was in memory.
    Entry(Entry),
    /// The message is on disk.
    Stub(Stub),
}

impl TakenOut {
    /// The message's record.
    pub(crate) fn lsn(&self) -> Lsn {
        match self {
            TakenOut::Entry(entry) => entry.envelope.lsn,
            TakenOut::Stub(stub) => stub.lsn,
        }
    }
}

/// Delayed messages, by due time and then by arrival.
#[derive(Debug, Default)]
pub(crate) struct Delayed {
    in_memory: BTreeMap<DuePlace, Entry>,
    on_disk: BTreeMap<DuePlace, Stub>,
    /// The messages that have a message id.
    by_name: BTreeSet<(Box<[u8]>, DuePlace)>,
    body_bytes: u64,
    /// Bytes that the entries in memory occupy with their messages.
    memory: usize,
    /// Bytes that the message ids occupy.
    names_charge: usize,
    /// Pages that are being read.
    asked: Vec<PageId>,
    /// The first message is due, but has to be read.
    is_blocked: bool,
}

impl Delayed {
    pub(crate) fn len(&self) -> usize {
        self.in_memory.len() + self.on_disk.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the bodies of all messages, in memory or on disk.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Bytes charged for these messages, besides the messages themselves.
    pub(crate) fn charge(&self) -> usize {
        self.in_memory.len() * ENTRY_CHARGE + self.on_disk.len() * STUB_CHARGE + self.names_charge
    }

    /// The records of all messages.
    pub(crate) fn lsns(&self) -> impl Iterator<Item = Lsn> {
        let in_memory = self.in_memory.values().map(|entry| entry.envelope.lsn);
        in_memory.chain(self.on_disk.values().map(|stub| stub.lsn))
    }

    /// Bytes that the entries in memory occupy with their messages.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// When the first message is due; `None` while that waits for the disk.
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.first().filter(|_| !self.is_blocked).map(|(due, _)| due)
    }

    pub(crate) fn insert(&mut self, due: Time, entry: Entry) {
        let place = (due, entry.envelope.sequence);
        self.body_bytes += entry.body_bytes();
        self.name(name(&entry), place);
        self.keep(place, entry);
    }

    /// Takes the first message that is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Time) -> Front<Entry> {
        let Some(place) = self.first().filter(|(due, _)| *due <= now) else { return Front::Nothing };
        let entry = self.take(place);
        self.is_blocked = entry.is_none();
        entry.map_or(Front::OnDisk, Front::Entry)
    }

    /// Takes the first message with this message id that is due after `now`.
    pub(crate) fn pop_named(&mut self, name: &[u8], now: Time) -> Option<TakenOut> {
        let first = (Box::from(name), (Time(now.0.saturating_add(1)), 0));
        let (_, place) = self.by_name.range(first..).next().filter(|(other, _)| **other == *name)?;
        let place = *place;
        if let Some(entry) = self.take(place) {
            return Some(TakenOut::Entry(entry));
        }
        self.unname(name, place);
        let stub = self.on_disk.remove(&place)?;
        self.body_bytes -= stub.body_bytes;
        self.is_blocked = false;
        Some(TakenOut::Stub(stub))
    }

    /// Takes a message out of memory.
    pub(crate) fn take(&mut self, place: DuePlace) -> Option<Entry> {
        let entry = self.in_memory.remove(&place)?;
        self.memory -= entry.memory();
        self.body_bytes -= entry.body_bytes();
        if let Some(name) = name(&entry) {
            self.unname(name, place);
        }
        Some(entry)
    }

    /// The messages in memory, the earliest due time first.
    pub(crate) fn in_memory(&self) -> impl DoubleEndedIterator<Item = (DuePlace, &Entry)> {
        self.in_memory.iter().map(|(place, entry)| (*place, entry))
    }

    /// The messages on disk, the earliest due time first.
    pub(crate) fn on_disk(&self) -> impl Iterator<Item = (DuePlace, &Stub)> {
        self.on_disk.iter().map(|(place, stub)| (*place, stub))
    }

    /// A message in memory, to be changed.
    pub(crate) fn entry_mut(&mut self, place: DuePlace) -> Option<&mut Entry> {
        self.in_memory.get_mut(&place)
    }

    /// Moves a message out of memory that is in this page, or is about to be written to it.
    pub(crate) fn shelve(&mut self, place: DuePlace, page: PageId) -> Option<Entry> {
        let entry = self.in_memory.remove(&place)?;
        self.memory -= entry.memory();
        let (lsn, is_redelivered) = (entry.envelope.lsn, entry.envelope.is_redelivered);
        self.on_disk.insert(place, Stub { page, lsn, body_bytes: entry.body_bytes(), is_redelivered });
        Some(entry)
    }

    /// Whether a message is in this page alone.
    pub(crate) fn is_shelved(&self, place: DuePlace, page: PageId) -> bool {
        self.on_disk.get(&place).is_some_and(|stub| stub.page == page)
    }

    /// Moves a message back into memory that was read, or could not be written.
    pub(crate) fn unshelve(&mut self, place: DuePlace, mut entry: Entry) {
        if let Some(stub) = self.on_disk.remove(&place) {
            entry.envelope.is_redelivered |= stub.is_redelivered;
            self.is_blocked = false;
            self.keep(place, entry);
        }
    }

    /// Adds a message that is on disk, as after a restart.
    pub(crate) fn restore(&mut self, place: DuePlace, stub: Stub, name: Option<&[u8]>) {
        self.body_bytes += stub.body_bytes;
        self.name(name, place);
        self.on_disk.insert(place, stub);
    }

    /// Forgets messages on disk that cannot be read.
    pub(crate) fn forget(&mut self, places: &BTreeSet<DuePlace>) {
        for place in places {
            self.body_bytes -= self.on_disk.remove(place).map_or(0, |stub| stub.body_bytes);
        }
        let charge = &mut self.names_charge;
        self.by_name.retain(|(name, place)| {
            let is_kept = !places.contains(place);
            *charge -= if is_kept { 0 } else { name_charge(name) };
            is_kept
        });
        self.is_blocked = false;
    }

    /// Requests the pages of the messages that are due first: if one of these blocks others and there is room
    /// for it, or if less than `ahead` bytes are in memory.
    pub(crate) fn ask(&mut self, ahead: usize, has_room: bool, pages: &Pages) -> Vec<(PageId, PagePlace)> {
        let mut asked = Vec::new();
        let is_wanted = if self.is_blocked { has_room } else { self.memory < ahead };
        if !is_wanted || !self.asked.is_empty() {
            return asked;
        }
        for stub in self.on_disk.values().take(LOOKED_MAX) {
            if self.asked.contains(&stub.page) {
                continue;
            }
            // A page that is being written can be read afterwards.
            let place = pages.get(stub.page).and_then(|page| page.place);
            let Some(place) = place.filter(|_| asked.len() < ASKED_MAX) else { break };
            self.asked.push(stub.page);
            asked.push((stub.page, place));
        }
        asked
    }

    /// Notes that a page was read, or could not be.
    pub(crate) fn answered(&mut self, page: PageId) {
        self.asked.retain(|asked| *asked != page);
    }

    fn first(&self) -> Option<DuePlace> {
        let firsts = [self.in_memory.keys().next(), self.on_disk.keys().next()];
        firsts.into_iter().flatten().min().copied()
    }

    fn keep(&mut self, place: DuePlace, entry: Entry) {
        self.memory += entry.memory();
        self.in_memory.insert(place, entry);
    }

    fn name(&mut self, name: Option<&[u8]>, place: DuePlace) {
        if let Some(name) = name {
            self.names_charge += name_charge(name);
            self.by_name.insert((name.into(), place));
        }
    }

    fn unname(&mut self, name: &[u8], place: DuePlace) {
        if self.by_name.remove(&(name.into(), place)) {
            self.names_charge -= name_charge(name);
        }
    }
}

/// The message id that the publisher chose, if there is one.
fn name(entry: &Entry) -> Option<&[u8]> {
    entry.message.view().property(Property::MessageId)
}

fn name_charge(name: &[u8]) -> usize {
    size_of::<(Box<[u8]>, DuePlace)>() + TREE_OVERHEAD + name.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::Gauge;
    use crate::message::{Address, Envelope, Message, MessageView, OriginId, Properties, Span};

    fn entry(sequence: u64, name: &str, body: &str) -> Entry {
        let mut properties = Properties::new(OriginId::BROKER);
        properties.set(Property::MessageId, Span::new(0, name.len()).expect("it is short"));
        let view = MessageView { properties: &properties, text: name.as_bytes(), body: body.as_bytes() };
        let envelope = Envelope {
            address: Arc::new(Address::new(b"", b"q")),
            sequence,
            lsn: Lsn::NONE,
            since: Time(0),
            expiration_ms: None,
            deaths: None,
            failures: 0,
            is_redelivered: false,
            is_rejected: false,
            priority: 0,
        };
        Entry::new(Message::store(&view, None, &Gauge::default()), envelope)
    }

    /// The sequence numbers of the messages that are due by `now`.
    fn due(delayed: &mut Delayed, now: u64) -> Vec<u64> {
        let pop = || match delayed.pop_due(Time(now)) {
            Front::Entry(entry) => Some(entry.envelope.sequence),
            Front::OnDisk | Front::Nothing => None,
        };
        std::iter::from_fn(pop).collect()
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
            let found = delayed.pop_named(name.as_bytes(), Time(0)).map(|taken| match taken {
                TakenOut::Entry(entry) => entry.envelope.sequence,
                TakenOut::Stub(stub) => stub.lsn.0,
            });
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(due(&mut delayed, 9), [4, 5]);
        assert_eq!((delayed.by_name.len(), delayed.charge()), (0, 0));
    }

    fn place(segment: u32) -> PagePlace {
        PagePlace { segment, index: 0 }
    }

    /// Puts a message on disk, in a page of its own.
    fn put_on_disk(delayed: &mut Delayed, pages: &mut Pages, at: DuePlace) -> PageId {
        let page = pages.begin_delayed(true, vec![at]);
        pages.written(page, place(at.1 as u32), true);
        assert_eq!(delayed.shelve(at, page).map(|entry| entry.envelope.sequence), Some(at.1));
        page
    }

    /// Four messages, the last two on disk; each body has as many bytes as its number says.
    fn half_on_disk() -> (Delayed, Pages) {
        let (mut delayed, mut pages) = (Delayed::default(), Pages::default());
        for (sequence, name, body) in [(1, "a", "1"), (2, "b", "22"), (3, "c", "333"), (4, "d", "4444")] {
            delayed.insert(Time(10 * sequence), entry(sequence, name, body));
        }
        for sequence in [3, 4] {
            put_on_disk(&mut delayed, &mut pages, (Time(10 * sequence), sequence));
        }
        (delayed, pages)
    }

    #[test]
    fn what_is_in_memory_and_what_waits_in_all_is_known_whatever_goes() {
        let (mut delayed, _) = half_on_disk();
        let one = entry(1, "a", "1").memory();
        let of_two = one + entry(2, "b", "22").memory();
        assert_eq!((delayed.len(), delayed.memory(), delayed.body_bytes()), (4, of_two, 10));
        assert!(matches!(delayed.pop_named(b"d", Time(0)), Some(TakenOut::Stub(_))), "it is on disk");
        assert_eq!((delayed.len(), delayed.memory(), delayed.body_bytes()), (3, of_two, 6));
        assert!(delayed.take((Time(20), 2)).is_some());
        assert_eq!((delayed.len(), delayed.memory(), delayed.body_bytes()), (2, one, 4));
        delayed.unshelve((Time(30), 3), entry(3, "c", "333"));
        assert_eq!((delayed.memory(), delayed.body_bytes()), (one + entry(3, "c", "333").memory(), 4));
        assert_eq!(due(&mut delayed, 30), [1, 3]);
        assert_eq!((delayed.len(), delayed.memory(), delayed.body_bytes(), delayed.charge()), (0, 0, 0, 0));
    }

    #[test]
    fn what_cannot_be_read_is_forgotten_with_its_names_and_nothing_else_is() {
        let (mut delayed, _) = half_on_disk();
        delayed.forget(&BTreeSet::from([(Time(30), 3)]));
        assert_eq!((delayed.len(), delayed.body_bytes()), (3, 7));
        for (name, expected) in [("a", true), ("b", true), ("c", false), ("d", true)] {
            assert_eq!(delayed.pop_named(name.as_bytes(), Time(0)).is_some(), expected, "{name}");
        }
        assert_eq!((delayed.len(), delayed.body_bytes(), delayed.charge()), (0, 0, 0));
    }

    #[test]
    fn each_is_charged_with_what_it_keeps_and_with_little_more() {
        let charge = |in_memory: u64, on_disk: u64, name: &str| {
            let (mut delayed, mut pages) = (Delayed::default(), Pages::default());
            for sequence in 1..=in_memory + on_disk {
                delayed.insert(Time(sequence), entry(sequence, name, "body"));
                if sequence > in_memory {
                    put_on_disk(&mut delayed, &mut pages, (Time(sequence), sequence));
                }
            }
            delayed.charge()
        };
        let (of_entry, of_stub) = (size_of::<(DuePlace, Entry)>(), size_of::<(DuePlace, Stub)>());
        for (in_memory, on_disk, keeps) in [
            (1, 0, of_entry),
            (5, 0, 5 * of_entry),
            (0, 1, of_stub),
            (0, 5, 5 * of_stub),
            (3, 2, 3 * of_entry + 2 * of_stub),
        ] {
            let charged = charge(in_memory, on_disk, "");
            let row = format!("{in_memory} in memory, {on_disk} on disk: {charged}");
            assert!((keeps..2 * keeps).contains(&charged), "{row}, but they keep {keeps}");
            for name in ["a", "a name of some length"] {
                let of_name = size_of::<(Box<[u8]>, DuePlace)>() + name.len();
                let keeps = of_name * (in_memory + on_disk) as usize;
                let more = charge(in_memory, on_disk, name) - charged;
                assert!((keeps..2 * keeps).contains(&more), "{row}, and {more} for `{name}`");
            }
        }
    }

    #[test]
    fn pages_are_read_ahead_and_few_of_them_at_once() {
        let (mut delayed, mut pages) = (Delayed::default(), Pages::default());
        for sequence in 1..=7 {
            delayed.insert(Time(sequence), entry(sequence, "", "body"));
        }
        let on_disk: Vec<(PageId, PagePlace)> = (2..=7)
            .map(|sequence| {
                (put_on_disk(&mut delayed, &mut pages, (Time(sequence), sequence)), place(sequence as u32))
            })
            .collect();
        let memory = delayed.memory();
        for (ahead, expected) in [(memory - 1, 0), (memory, 0), (memory + 1, ASKED_MAX)] {
            let asked = delayed.ask(ahead, true, &pages);
            assert_eq!(asked, on_disk[..expected], "{ahead} ahead of {memory}");
        }
        assert_eq!(delayed.ask(usize::MAX, true, &pages), [], "it waits for these");
        on_disk[..ASKED_MAX].iter().for_each(|(page, _)| delayed.answered(*page));
        // A due message that has to be read is read whatever is in memory, if there is room.
        assert_eq!(due(&mut delayed, 9), [1]);
        assert_eq!(delayed.ask(usize::MAX, false, &pages), []);
        assert_eq!(delayed.ask(0, true, &pages), on_disk[..ASKED_MAX]);
    }
}
