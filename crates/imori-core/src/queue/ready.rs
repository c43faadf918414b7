//! The messages that wait to be given out, in order.

use std::collections::{BTreeMap, VecDeque};
use std::mem::size_of;
use std::sync::Arc;

use crate::delivery::Delivery;
use crate::message::{AddressView, Envelope, Message};

/// A message in a queue.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) message: Arc<Message>,
    pub(super) envelope: Envelope,
}

impl Entry {
    /// Bytes that an entry keeps besides its message.
    pub(super) const CHARGE: usize = size_of::<Entry>();

    pub(super) fn address(&self) -> AddressView<'_> {
        AddressView::new(&self.envelope.address)
    }

    pub(super) fn delivery<'a>(&'a self, address: &'a AddressView<'a>) -> Delivery<'a> {
        Delivery {
            message: self.message.view(),
            address,
            deaths: self.envelope.deaths.as_ref(),
            failures: self.envelope.failures,
            is_redelivered: self.envelope.is_redelivered,
        }
    }

    pub(super) fn body_bytes(&self) -> u64 {
        self.message.view().body.len() as u64
    }
}

/// Waiting messages: the highest priority first, then by sequence number.
#[derive(Debug)]
pub(super) struct Ready {
    /// One a priority, the highest first.
    levels: Vec<Level>,
    len: usize,
    body_bytes: u64,
}

/// Messages of one priority.
#[derive(Debug, Default)]
struct Level {
    /// Given out before and released: each has a smaller number than all that are fresh.
    released: BTreeMap<u64, Entry>,
    fresh: Segments<Entry>,
}

impl Ready {
    pub(super) fn new(priority_max: Option<u8>) -> Ready {
        let levels = usize::from(priority_max.unwrap_or(0)) + 1;
        Ready { levels: (0..levels).map(|_| Level::default()).collect(), len: 0, body_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of all bodies that wait.
    pub(super) fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    pub(super) fn push(&mut self, entry: Entry) {
        self.count(&entry);
        if let Some(level) = self.level(entry.envelope.priority) {
            level.fresh.push_back(entry);
        }
    }

    /// Puts a message back to where it was taken from.
    pub(super) fn put_back(&mut self, entry: Entry) {
        self.count(&entry);
        if let Some(level) = self.level(entry.envelope.priority) {
            level.released.insert(entry.envelope.sequence, entry);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        let entry = self.levels.iter_mut().find_map(Level::pop)?;
        self.uncount(&entry);
        Some(entry)
    }

    /// Takes the message that goes first when there are too many: the oldest of the lowest priority.
    pub(super) fn pop_to_drop(&mut self) -> Option<Entry> {
        let entry = self.levels.iter_mut().rev().find_map(Level::pop)?;
        self.uncount(&entry);
        Some(entry)
    }

    /// The front message of each priority.
    pub(super) fn fronts(&self) -> impl Iterator<Item = &Entry> {
        self.levels.iter().filter_map(Level::front)
    }

    /// Takes a front message that `is_due`, if there is one.
    pub(super) fn pop_if(&mut self, is_due: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let level = self.levels.iter_mut().find(|level| level.front().is_some_and(&is_due))?;
        let entry = level.pop()?;
        self.uncount(&entry);
        Some(entry)
    }

    /// For how many messages there is room without growing.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.levels.iter().flat_map(|level| &level.fresh.segments).map(VecDeque::capacity).sum()
    }

    fn count(&mut self, entry: &Entry) {
        self.len += 1;
        self.body_bytes += entry.body_bytes();
    }

    fn uncount(&mut self, entry: &Entry) {
        self.len -= 1;
        self.body_bytes -= entry.body_bytes();
    }

    fn level(&mut self, priority: u8) -> Option<&mut Level> {
        let below_top = self.levels.len().checked_sub(1 + usize::from(priority))?;
        self.levels.get_mut(below_top)
    }
}

impl Level {
    fn front(&self) -> Option<&Entry> {
        self.released.first_key_value().map(|(_, entry)| entry).or_else(|| self.fresh.front())
    }

    fn pop(&mut self) -> Option<Entry> {
        match self.released.pop_first() {
            Some((_, entry)) => Some(entry),
            None => self.fresh.pop_front(),
        }
    }
}

/// A deque that grows by pieces: a long one never moves all its elements at once.
#[derive(Debug)]
struct Segments<T> {
    segments: VecDeque<VecDeque<T>>,
}

/// Elements of a segment: large enough to be rare, small enough to be given back soon.
const SEGMENT_LEN: usize = 256;

/// Elements for which an empty queue keeps room: many queues are empty most of the time.
const SEGMENT_KEPT: usize = 32;

impl<T> Default for Segments<T> {
    fn default() -> Segments<T> {
        Segments { segments: VecDeque::new() }
    }
}

impl<T> Segments<T> {
    fn push_back(&mut self, element: T) {
        match self.segments.back_mut() {
            Some(last) if last.len() < SEGMENT_LEN => last.push_back(element),
            // The first segment grows with its queue; those of a long queue come whole.
            Some(_) => {
                let mut segment = VecDeque::with_capacity(SEGMENT_LEN);
                segment.push_back(element);
                self.segments.push_back(segment);
            }
            None => self.segments.push_back(VecDeque::from([element])),
        }
    }

    fn front(&self) -> Option<&T> {
        self.segments.front()?.front()
    }

    fn pop_front(&mut self) -> Option<T> {
        let is_last = self.segments.len() == 1;
        let first = self.segments.front_mut()?;
        let element = first.pop_front();
        if first.is_empty() && (!is_last || first.capacity() > SEGMENT_KEPT) {
            self.segments.pop_front();
        }
        element
    }
}
