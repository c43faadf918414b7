//! The consumers of a queue, and which of them is served next.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Bound;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::groups::Groups;
use super::seeker::{Seeker, Selection};
use super::seekers::{SeekerId, Seekers};
use crate::delivery::Delivery;
use crate::id::Reader;
use crate::message::MessageView;

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
    /// How many of them do not take just what comes first.
    seekers_len: usize,
    /// How far those have looked.
    seekers: Seekers,
    /// Which of them has which group of messages, once a message was in one.
    groups: Option<Box<Groups>>,
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
    /// How far it has looked, of one that selects or browses, or must not have all; others take what comes first.
    seeker: Option<SeekerId>,
    /// The consumer sees messages and takes none.
    is_browser: bool,
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

    pub(crate) fn add(
        &mut self,
        reader: Reader,
        priority: i32,
        is_exclusive: bool,
        selection: Option<Selection>,
    ) {
        self.remove(reader);
        if is_exclusive {
            self.exclusive = Some(reader);
        }
        self.last_arrival += 1;
        let is_browser = selection.as_ref().is_some_and(|selection| selection.is_browser);
        let is_alone = self.groups.is_some();
        let selection = selection.or_else(|| is_alone.then(Selection::all));
        self.seekers_len += usize::from(selection.is_some());
        let seeker = selection.map(|selection| self.seekers.join(selection, is_alone));
        let consumer = Consumer { priority, arrival: self.last_arrival, turn: None, seeker, is_browser };
        if self.is_single_active && !is_browser {
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
            self.plain_turns -= usize::from(consumer.seeker.is_none());
        }
        if let Some(seeker) = consumer.seeker {
            self.seekers_len -= 1;
            self.seekers.leave(seeker);
        }
        self.take_groups_of(reader);
        if self.active == Some(reader) {
            let successor =
                |(_, consumer): &(&Reader, &Consumer)| (Reverse(consumer.priority), consumer.arrival);
            let takers = self.all.iter().filter(|(_, consumer)| !consumer.is_browser);
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
                active.is_some_and(|consumer| consumer.turn.is_some() && consumer.seeker.is_none())
            }
            None => self.plain_turns > 0,
        }
    }

    /// Tells whether somebody can take more.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Tells whether any of them does not take just what comes first.
    #[inline]
    pub(crate) fn has_seekers(&self) -> bool {
        self.seekers_len > 0
    }

    /// The first consumer in turn. The queue has no selectors, browsers or single active consumer.
    #[inline]
    pub(crate) fn first(&self) -> Option<Reader> {
        debug_assert!(self.seekers_len == 0 && !self.is_single_active, "they would have to be asked");
        self.turns.first_key_value().map(|(_, reader)| *reader)
    }

    /// Notes that the first in turn has been served, where there are no groups: the next of its priority comes.
    #[inline]
    pub(crate) fn served_in_turn(&mut self, reader: Reader) {
        // Alone, its turn is next again.
        if self.turns.len() > 1 && !self.is_single_active {
            self.wait(reader);
            self.wake(reader);
        }
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
        if self.seekers_len == 0
            && !self.is_single_active
            && matches!(stance, Stance::Front(_) | Stance::Fresh(None))
        {
            return self.turns.first_key_value().map(|(turn, reader)| (*turn, *reader));
        }
        let mut behind = self.behind(after);
        behind.find(|(_, reader)| {
            self.may_be_served(*reader)
                && self.all.get(reader).is_some_and(|one| self.may_take(one, delivery, stance))
                && self.may_have(Some(*reader), delivery)
        })
    }

    /// Tells whether the group of a message, if it is in one, lets this consumer have it, or somebody who is none.
    #[inline]
    pub(crate) fn may_have(&self, reader: Option<Reader>, delivery: &Delivery<'_>) -> bool {
        match &self.groups {
            None => true,
            Some(groups) => groups.allow(reader, &delivery.message, delivery.sequence),
        }
    }

    /// Tells whether groups of messages are kept together.
    #[inline]
    pub(crate) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// Keeps groups of messages together from now on. Then each consumer looks on its own for what it may have.
    #[cold]
    pub(crate) fn begin_groups(&mut self) {
        self.groups.get_or_insert_default();
        let readers: Vec<Reader> = self.readers().collect();
        for reader in readers {
            self.part(reader);
        }
    }

    /// Notes a delivery that is not settled.
    #[inline]
    pub(crate) fn note_out(&mut self, message: &MessageView<'_>) {
        if let Some(groups) = &mut self.groups {
            groups.note_out(message);
        }
    }

    /// Notes that a delivery is settled, whatever came of it.
    #[inline]
    pub(crate) fn note_back(&mut self, message: &MessageView<'_>) {
        if let Some(groups) = &mut self.groups {
            let passed = groups.note_back(message);
            self.note_freed(passed);
        }
    }

    fn take_groups_of(&mut self, reader: Reader) {
        if let Some(groups) = &mut self.groups {
            let passed = groups.leave(reader);
            self.note_freed(passed);
        }
    }

    /// Notes that groups may have become free, and from where on somebody may want messages now.
    fn note_freed(&mut self, passed: Option<u64>) {
        self.groups.take_if(|groups| self.all.is_empty() && groups.is_empty());
        if let Some(passed) = passed {
            self.look_again_from(passed);
        }
    }

    fn look_again_from(&mut self, sequence: u64) {
        self.seekers.all_mut().for_each(|seeker| seeker.look_again_from(sequence));
    }

    /// Notes that a consumer refused a message that came back; false where it refused too many before. It does not get
    /// that again, and where it took what comes first it looks from now on for what it did not refuse.
    pub(crate) fn refuse(&mut self, reader: Reader, sequence: u64) -> bool {
        self.part(reader).is_none_or(|seeker| self.seekers.refuse(seeker, sequence))
    }

    /// Notes that a message has left the queue.
    #[inline]
    pub(crate) fn note_left(&mut self, sequence: u64) {
        self.seekers.note_left(sequence);
    }

    /// Gives a consumer that takes messages a seeker of its own.
    fn part(&mut self, reader: Reader) -> Option<SeekerId> {
        let consumer = self.all.get_mut(&reader).filter(|consumer| !consumer.is_browser)?;
        let own = match consumer.seeker {
            Some(seeker) => self.seekers.part(seeker),
            None => {
                self.seekers_len += 1;
                self.plain_turns -= usize::from(consumer.turn.is_some());
                self.seekers.join(Selection::all(), true)
            }
        };
        consumer.seeker = Some(own);
        Some(own)
    }

    /// The next in turn behind `after` that does not take just what comes first.
    pub(crate) fn next_seeker(&self, after: Option<Turn>) -> Option<(Turn, Reader)> {
        let is_seeker =
            |reader: &Reader| self.all.get(reader).is_some_and(|consumer| consumer.seeker.is_some());
        self.behind(after).find(|(_, reader)| is_seeker(reader) && self.may_be_served(*reader))
    }

    fn behind(&self, after: Option<Turn>) -> impl Iterator<Item = (Turn, Reader)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.turns.range((from, Bound::Unbounded)).map(|(turn, reader)| (*turn, *reader))
    }

    /// Lends what a consumer knows of how far it has looked; it is given back by [`Consumers::give_back`].
    pub(crate) fn lend(&mut self, reader: Reader) -> Option<Box<Seeker>> {
        self.seekers.lend(self.all.get(&reader)?.seeker?)
    }

    /// Takes back what was lent.
    pub(crate) fn give_back(&mut self, reader: Reader, seeker: Box<Seeker>) {
        if let Some(id) = self.all.get(&reader).and_then(|consumer| consumer.seeker) {
            self.seekers.give_back(id, seeker);
        }
    }

    /// Tells whether a consumer selects or browses, and has looked at all messages below this number.
    pub(crate) fn has_looked_through(&self, reader: Reader, end: u64) -> bool {
        let seeker = self.all.get(&reader).and_then(|consumer| self.seekers.find(consumer.seeker?));
        seeker.is_some_and(|seeker| seeker.is_at(end))
    }

    /// Notes that a new message was offered to all who select, can take more and had looked at all before `end`: they
    /// do not want it. Tells whether somebody waits who has to see it: a browser, or one that drops it.
    pub(crate) fn pass(&mut self, end: u64, new_end: u64) -> bool {
        let mut has_others = false;
        for reader in self.turns.values() {
            let seeker = self.all.get(reader).and_then(|consumer| consumer.seeker);
            let Some(seeker) = seeker.and_then(|id| self.seekers.find_mut(id)) else { continue };
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
        let waiting = self.turns.values();
        let waiting = waiting.filter_map(|reader| self.seekers.find(self.all.get(reader)?.seeker?));
        waiting.map(|seeker| seeker.mark(priority)).min().unwrap_or(u64::MAX)
    }

    /// Notes that a message came back to its place.
    pub(crate) fn note_returned(&mut self, priority: u8, sequence: u64) {
        if self.seekers_len > 0 {
            self.seekers.all_mut().for_each(|seeker| seeker.note_returned(priority, sequence));
        }
    }

    /// Tells whether this is one of those that get deliveries.
    pub(crate) fn may_be_served(&self, reader: Reader) -> bool {
        let Some(consumer) = self.all.get(&reader) else { return false };
        !self.is_single_active || self.active == Some(reader) || consumer.is_browser
    }

    /// Notes that the consumer whose turn it was has been served with this: the next of its priority comes.
    pub(crate) fn served(&mut self, reader: Reader, message: &MessageView<'_>) {
        if let Some(groups) = &mut self.groups
            && self.all.get(&reader).is_some_and(|consumer| !consumer.is_browser)
        {
            let passed = groups.give(reader, message);
            self.note_freed(passed);
        }
        self.served_in_turn(reader);
    }

    /// Notes that the consumer whose turn it was cannot take more until it is woken.
    pub(crate) fn wait(&mut self, reader: Reader) {
        let Some(consumer) = self.all.get_mut(&reader) else { return };
        if let Some(turn) = consumer.turn.take() {
            self.turns.remove(&turn);
            self.plain_turns -= usize::from(consumer.seeker.is_none());
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
            self.plain_turns += usize::from(consumer.seeker.is_none());
        }
    }

    /// Tells whether a consumer may be given a message, and wants it.
    fn may_take(&self, consumer: &Consumer, delivery: &Delivery<'_>, stance: Stance) -> bool {
        let seeker = match consumer.seeker {
            None => return matches!(stance, Stance::Front(_) | Stance::Fresh(None)),
            Some(seeker) => self.seekers.find(seeker),
        };
        match (seeker, stance) {
            (None, _) => false,
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
