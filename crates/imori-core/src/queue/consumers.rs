//! The consumers of a queue, and which of them is served next.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::id::Reader;

/// Why a consumer was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeRefusal {
    /// Another consumer has the queue for itself.
    Exclusive,
    /// The consumer wants the queue for itself but others read it.
    InUse,
    /// The consumer wants the queue for itself, but one consumer at a time gets deliveries there anyway.
    SingleActive,
    /// The queue is about to be deleted.
    Retired,
}

/// The consumers of a queue: in turn among equals, the higher priority first.
///
/// Of a queue with a single active consumer the first gets all deliveries for as long as it is there. When it goes, the
/// one of the highest priority takes its place, of equals the one that came first.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    all: HashMap<Reader, Consumer, FixedState>,
    /// Consumers that can take more, by falling priority; of equals the longest wait comes first.
    turns: BTreeMap<Turn, Reader>,
    last_turn: u64,
    exclusive: Option<Reader>,
    is_single_active: bool,
    /// The consumer that gets deliveries, where one at a time does.
    active: Option<Reader>,
    last_arrival: u64,
}

#[derive(Debug)]
struct Consumer {
    priority: i32,
    /// The number of this consumer, counted in the order in which they came.
    arrival: u64,
    /// `None` while it can take no more.
    turn: Option<Turn>,
}

type Turn = (Reverse<i32>, u64);

impl Consumers {
    /// No consumers yet, of a queue where one at a time gets deliveries, or all do.
    pub(crate) fn new(is_single_active: bool) -> Consumers {
        Consumers { is_single_active, ..Consumers::default() }
    }

    /// The only consumer that gets deliveries, where one at a time does.
    pub(crate) fn active(&self) -> Option<Reader> {
        self.active
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All consumers, in no particular order.
    pub(crate) fn readers(&self) -> impl Iterator<Item = Reader> {
        self.all.keys().copied()
    }

    pub(crate) fn admit(&self, is_exclusive: bool) -> Result<(), ConsumeRefusal> {
        match (self.exclusive, is_exclusive) {
            (Some(_), _) => Err(ConsumeRefusal::Exclusive),
            (None, true) if self.is_single_active => Err(ConsumeRefusal::SingleActive),
            (None, true) if !self.all.is_empty() => Err(ConsumeRefusal::InUse),
            (None, _) => Ok(()),
        }
    }

    pub(crate) fn add(&mut self, reader: Reader, priority: i32, is_exclusive: bool) {
        self.remove(reader);
        if is_exclusive {
            self.exclusive = Some(reader);
        }
        self.last_arrival += 1;
        self.all.insert(reader, Consumer { priority, arrival: self.last_arrival, turn: None });
        if self.is_single_active {
            self.active.get_or_insert(reader);
        }
        self.wake(reader);
    }

    /// Forgets a consumer; tells whether it was one.
    pub(crate) fn remove(&mut self, reader: Reader) -> bool {
        let Some(consumer) = self.all.remove(&reader) else {
            return false;
        };
        if self.exclusive == Some(reader) {
            self.exclusive = None;
        }
        if let Some(turn) = consumer.turn {
            self.turns.remove(&turn);
        }
        if self.active == Some(reader) {
            let successor =
                |(_, consumer): &(&Reader, &Consumer)| (Reverse(consumer.priority), consumer.arrival);
            self.active = self.all.iter().min_by_key(successor).map(|(reader, _)| *reader);
        }
        true
    }

    /// The consumer that is served next.
    pub(crate) fn next(&self) -> Option<Reader> {
        if self.is_single_active {
            let can_take =
                |reader: &Reader| self.all.get(reader).is_some_and(|consumer| consumer.turn.is_some());
            return self.active.filter(can_take);
        }
        self.turns.first_key_value().map(|(_, reader)| *reader)
    }

    /// Tells whether this is one of those that get deliveries.
    pub(crate) fn may_be_served(&self, reader: Reader) -> bool {
        self.all.contains_key(&reader) && (!self.is_single_active || self.active == Some(reader))
    }

    /// Notes that the consumer whose turn it was has been served: the next of its priority comes.
    pub(crate) fn served(&mut self, reader: Reader) {
        // Alone, its turn is next again.
        if self.turns.len() > 1 && !self.is_single_active {
            self.wait(reader);
            self.wake(reader);
        }
    }

    /// Notes that the consumer whose turn it was cannot take more until it is woken.
    pub(crate) fn wait(&mut self, reader: Reader) {
        let turn = self.all.get_mut(&reader).and_then(|consumer| consumer.turn.take());
        turn.and_then(|turn| self.turns.remove(&turn));
    }

    /// A consumer can take more again.
    pub(crate) fn wake(&mut self, reader: Reader) {
        if let Some(consumer) = self.all.get_mut(&reader)
            && consumer.turn.is_none()
        {
            self.last_turn += 1;
            let turn = (Reverse(consumer.priority), self.last_turn);
            consumer.turn = Some(turn);
            self.turns.insert(turn, reader);
        }
    }
}
