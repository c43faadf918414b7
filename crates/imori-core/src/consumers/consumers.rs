//! The consumers of a queue, and which of them is served next.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::seeker::Seeker;
use crate::delivery::Delivery;
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
    /// How many of them select or browse.
    seekers: usize,
    /// How many of those that can take more take what comes first.
    plain_turns: usize,
}

#[derive(Debug)]
struct Consumer {
    priority: i32,
    /// The number of this consumer, counted in the order in which they came.
    arrival: u64,
    /// `None` while it can take no more.
    turn: Option<Turn>,
    /// The consumer takes what comes first.
    is_plain: bool,
    /// How far it has looked, of one that selects or browses; lent while it looks.
    seeker: Option<Box<Seeker>>,
}

/// Where a consumer that can take more stands in turn.
pub(crate) type Turn = (Reverse<i32>, u64);

/// How a message is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stance {
    /// As the first that waits, of this priority.
    Front(u8),
    /// As a new one, while messages below this number wait, or none where it is `None`.
    Fresh(Option<u64>),
}

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

    pub(crate) fn add(&mut self, reader: Reader, priority: i32, is_exclusive: bool, seeker: Option<Seeker>) {
        self.remove(reader);
        if is_exclusive {
            self.exclusive = Some(reader);
        }
        self.last_arrival += 1;
        self.seekers += usize::from(seeker.is_some());
        let (is_plain, seeker) = (seeker.is_none(), seeker.map(Box::new));
        let consumer = Consumer { priority, arrival: self.last_arrival, turn: None, is_plain, seeker };
        if self.is_single_active && !consumer.is_browser() {
            self.active.get_or_insert(reader);
        }
        self.all.insert(reader, consumer);
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
            self.plain_turns -= usize::from(consumer.is_plain);
        }
        self.seekers -= usize::from(!consumer.is_plain);
        if self.active == Some(reader) {
            let successor =
                |(_, consumer): &(&Reader, &Consumer)| (Reverse(consumer.priority), consumer.arrival);
            let takers = self.all.iter().filter(|(_, consumer)| !consumer.is_browser());
            self.active = takers.min_by_key(successor).map(|(reader, _)| *reader);
        }
        true
    }

    /// Tells whether one that takes what comes first can take more.
    #[inline]
    pub(crate) fn has_plain(&self) -> bool {
        match self.active.filter(|_| self.is_single_active) {
            Some(active) => {
                let active = self.all.get(&active);
                active.is_some_and(|consumer| consumer.turn.is_some() && consumer.is_plain)
            }
            None => self.plain_turns > 0,
        }
    }

    /// Tells whether somebody can take more.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Tells whether any of them selects or browses.
    #[inline]
    pub(crate) fn has_seekers(&self) -> bool {
        self.seekers > 0
    }

    /// The next in turn behind `after` to whom a message may be offered: who gets deliveries, can take more, and wants
    /// the message. A browser is offered nothing, as it would take nothing.
    #[inline]
    pub(crate) fn next(
        &self,
        after: Option<Turn>,
        delivery: &Delivery<'_>,
        stance: Stance,
    ) -> Option<(Turn, Reader)> {
        if self.seekers == 0
            && !self.is_single_active
            && matches!(stance, Stance::Front(_) | Stance::Fresh(None))
        {
            return self.turns.first_key_value().map(|(turn, reader)| (*turn, *reader));
        }
        let mut behind = self.behind(after);
        behind.find(|(_, reader)| {
            self.may_be_served(*reader)
                && self.all.get(reader).is_some_and(|one| one.may_take(delivery, stance))
        })
    }

    /// The next in turn behind `after` who selects or browses.
    pub(crate) fn next_seeker(&self, after: Option<Turn>) -> Option<(Turn, Reader)> {
        let is_seeker = |reader: &Reader| self.all.get(reader).is_some_and(|consumer| !consumer.is_plain);
        self.behind(after).find(|(_, reader)| is_seeker(reader) && self.may_be_served(*reader))
    }

    fn behind(&self, after: Option<Turn>) -> impl Iterator<Item = (Turn, Reader)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.turns.range((from, Bound::Unbounded)).map(|(turn, reader)| (*turn, *reader))
    }

    /// Lends what a consumer knows of how far it has looked; it is given back by [`Consumers::give_back`].
    pub(crate) fn lend(&mut self, reader: Reader) -> Option<Box<Seeker>> {
        self.all.get_mut(&reader)?.seeker.take()
    }

    /// Takes back what was lent.
    pub(crate) fn give_back(&mut self, reader: Reader, seeker: Box<Seeker>) {
        if let Some(consumer) = self.all.get_mut(&reader) {
            consumer.seeker = Some(seeker);
        }
    }

    /// Tells whether a consumer selects or browses, and has looked at all messages below this number.
    pub(crate) fn has_looked_through(&self, reader: Reader, end: u64) -> bool {
        let seeker = self.all.get(&reader).and_then(|consumer| consumer.seeker.as_ref());
        seeker.is_some_and(|seeker| seeker.is_at(end))
    }

    /// Notes that a new message was offered to all who select, can take more and had looked at all before `end`: they
    /// do not want it. Tells whether somebody waits who has to see it: a browser, or one that drops it.
    pub(crate) fn pass(&mut self, end: u64, new_end: u64) -> bool {
        let mut has_others = false;
        for reader in self.turns.values() {
            let Some(Consumer { seeker: Some(seeker), .. }) = self.all.get_mut(reader) else { continue };
            if seeker.is_browser() || seeker.drops_unwanted() {
                has_others = true;
            } else if seeker.is_at(end) && (!self.is_single_active || self.active == Some(*reader)) {
                seeker.end_at(new_end);
            }
        }
        has_others
    }

    /// The number below which all who look through the queue now have looked at the messages of a priority.
    pub(crate) fn least_mark(&self, priority: u8) -> u64 {
        let waiting = self.turns.values().filter_map(|reader| self.all.get(reader)?.seeker.as_ref());
        waiting.map(|seeker| seeker.mark(priority)).min().unwrap_or(u64::MAX)
    }

    /// Notes that a message came back to its place.
    pub(crate) fn note_returned(&mut self, priority: u8, sequence: u64) {
        if self.seekers > 0 {
            let seekers = self.all.values_mut().filter_map(|consumer| consumer.seeker.as_mut());
            seekers.for_each(|seeker| seeker.note_returned(priority, sequence));
        }
    }

    /// Tells whether this is one of those that get deliveries.
    pub(crate) fn may_be_served(&self, reader: Reader) -> bool {
        let Some(consumer) = self.all.get(&reader) else { return false };
        !self.is_single_active || self.active == Some(reader) || consumer.is_browser()
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
        let Some(consumer) = self.all.get_mut(&reader) else { return };
        if let Some(turn) = consumer.turn.take() {
            self.turns.remove(&turn);
            self.plain_turns -= usize::from(consumer.is_plain);
        }
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
            self.plain_turns += usize::from(consumer.is_plain);
        }
    }
}

impl Consumer {
    fn is_browser(&self) -> bool {
        self.seeker.as_ref().is_some_and(|seeker| seeker.is_browser())
    }

    /// Tells whether it may be given a message, and wants it.
    fn may_take(&self, delivery: &Delivery<'_>, stance: Stance) -> bool {
        match (&self.seeker, stance) {
            (None, Stance::Front(_)) => self.is_plain,
            (None, Stance::Fresh(end)) => self.is_plain && end.is_none(),
            (Some(seeker), _) if seeker.is_browser() => false,
            (Some(seeker), Stance::Front(priority)) => {
                seeker.is_new(priority, delivery.sequence) && seeker.wants(delivery)
            }
            (Some(seeker), Stance::Fresh(end)) => {
                end.is_none_or(|end| seeker.is_at(end)) && seeker.wants(delivery)
            }
        }
    }
}
