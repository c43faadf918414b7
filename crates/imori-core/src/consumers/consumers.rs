//! The consumers of a queue, and the choice of the next one to serve.

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

/// The reason why a consumer was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumeRefusal {
    /// Another consumer has the queue for itself.
    Exclusive,
    /// The consumer wants the queue for itself but others read it.
    InUse,
    /// The consumer wants the queue for itself, but the queue has a single active consumer anyway.
    SingleActive,
    /// The queue is about to be deleted.
    Retired,
}

/// The consumers of a queue: the highest priority first, equals in turn.
///
/// A queue with a single active consumer gives all deliveries to the first consumer for as long as it stays.
/// Its successor is the consumer with the highest priority; among equals, the one that came first.
#[derive(Debug, Default)]
pub(crate) struct Consumers {
    all: HashMap<Reader, Consumer, FixedState>,
    /// Consumers that can take more, by falling priority; among equals, the longest wait comes first.
    turns: BTreeMap<ServiceOrder, Reader>,
    last_turn: u64,
    exclusive: Option<Reader>,
    is_single_active: bool,
    /// The single active consumer, if the queue is of that kind.
    active: Option<Reader>,
    last_arrival: u64,
    /// Number of seekers: consumers that do not take messages in order.
    seekers_len: usize,
    /// The positions up to which the seekers have looked.
    seekers: Seekers,
    /// The consumer of each group of messages; `None` until the queue had a message in a group.
    groups: Option<Box<Groups>>,
    /// Number of consumers that can take more and are not seekers.
    plain_turns: usize,
}

#[derive(Debug)]
struct Consumer {
    priority: i32,
    /// The number of this consumer in the order of arrival.
    arrival: u64,
    /// `None` while it can take no more.
    turn: Option<ServiceOrder>,
    /// The seeker of a consumer that selects, browses or must not have all messages; `None` if it takes
    /// messages in order.
    seeker: Option<SeekerId>,
    /// The consumer sees messages and takes none.
    is_browser: bool,
}

/// The place of a consumer that can take more in the order in which consumers are served.
pub(crate) type ServiceOrder = (Reverse<i32>, u64);

/// The position from which a message is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stance {
    /// It is the first ready message, of this priority.
    Front(u8),
    /// It is new. Messages below this number are ready before it, or no message if this is `None`.
    Fresh(Option<u64>),
}

impl Consumers {
    /// Creates an empty set of consumers, for a queue with or without a single active consumer.
    pub(crate) fn new(is_single_active: bool) -> Consumers {
        Consumers { is_single_active, ..Consumers::default() }
    }

    /// The single active consumer, if the queue is of that kind and has a consumer.
    #[cfg(test)]
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

    /// Removes a consumer; returns whether it was there.
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

    /// Whether a consumer that takes messages in order can take more.
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

    /// Whether any consumer can take more.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whether any consumer is a seeker.
    #[inline]
    pub(crate) fn has_seekers(&self) -> bool {
        self.seekers_len > 0
    }

    /// The first consumer in turn. The queue must not have seekers or a single active consumer.
    #[inline]
    pub(crate) fn first(&self) -> Option<Reader> {
        debug_assert!(self.seekers_len == 0 && !self.is_single_active, "they would have to be asked");
        self.turns.first_key_value().map(|(_, reader)| *reader)
    }

    /// Notes that the first in turn was served, without groups: the next of its priority comes.
    #[inline]
    pub(crate) fn served_in_turn(&mut self, reader: Reader) {
        // A consumer alone would be next again.
        if self.turns.len() > 1 && !self.is_single_active {
            self.wait(reader);
            self.wake(reader);
        }
    }

    /// The next consumer behind `after` that may be offered a message: it gets deliveries, can take more, and
    /// wants the message. A browser is offered nothing, as it would take nothing.
    #[inline]
    pub(crate) fn next(
        &self,
        after: Option<ServiceOrder>,
        delivery: &Delivery<'_>,
        stance: Stance,
    ) -> Option<(ServiceOrder, Reader)> {
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

    /// Whether the group of a message, if it has one, lets `reader` (`None` for a get) have it.
    #[inline]
    pub(crate) fn may_have(&self, reader: Option<Reader>, delivery: &Delivery<'_>) -> bool {
        match &self.groups {
            None => true,
            Some(groups) => groups.allow(reader, &delivery.message, delivery.sequence),
        }
    }

    /// Whether groups of messages are kept together.
    #[inline]
    pub(crate) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// Keeps groups of messages together from now on. Each consumer gets a seeker of its own, to find what it
    /// may have.
    #[cold]
    pub(crate) fn begin_groups(&mut self) {
        self.groups.get_or_insert_default();
        let readers: Vec<Reader> = self.readers().collect();
        for reader in readers {
            self.part(reader);
        }
    }

    /// Notes an unsettled delivery.
    #[inline]
    pub(crate) fn note_out(&mut self, message: &MessageView<'_>) {
        if let Some(groups) = &mut self.groups {
            groups.note_out(message);
        }
    }

    /// Notes that a delivery is settled, with whatever outcome.
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

    /// Notes that groups may have become free. From `passed` on, seekers may want messages that they passed.
    fn note_freed(&mut self, passed: Option<u64>) {
        self.groups.take_if(|groups| self.all.is_empty() && groups.is_empty());
        if let Some(passed) = passed {
            self.look_again_from(passed);
        }
    }

    fn look_again_from(&mut self, sequence: u64) {
        self.seekers.all_mut().for_each(|seeker| seeker.look_again_from(sequence));
    }

    /// Notes that a consumer refused a message, which was released; `false` if it refused too many before.
    /// The consumer does not get it again; it becomes a seeker with a look of its own.
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

    /// The next consumer in turn behind `after`, whatever messages it wants.
    pub(crate) fn next_in_turn(&self, after: Option<ServiceOrder>) -> Option<(ServiceOrder, Reader)> {
        self.behind(after).find(|(_, reader)| self.may_be_served(*reader))
    }

    /// The next seeker in turn behind `after`.
    pub(crate) fn next_seeker(&self, after: Option<ServiceOrder>) -> Option<(ServiceOrder, Reader)> {
        let is_seeker =
            |reader: &Reader| self.all.get(reader).is_some_and(|consumer| consumer.seeker.is_some());
        self.behind(after).find(|(_, reader)| is_seeker(reader) && self.may_be_served(*reader))
    }

    fn behind(&self, after: Option<ServiceOrder>) -> impl Iterator<Item = (ServiceOrder, Reader)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.turns.range((from, Bound::Unbounded)).map(|(turn, reader)| (*turn, *reader))
    }

    /// Lends the seeker of a consumer, until [`Consumers::give_back`] returns it.
    pub(crate) fn lend(&mut self, reader: Reader) -> Option<Box<Seeker>> {
        self.seekers.lend(self.all.get(&reader)?.seeker?)
    }

    /// Takes back a seeker that was lent.
    pub(crate) fn give_back(&mut self, reader: Reader, seeker: Box<Seeker>) {
        if let Some(id) = self.all.get(&reader).and_then(|consumer| consumer.seeker) {
            self.seekers.give_back(id, seeker);
        }
    }

    /// Whether a consumer is a seeker that has looked at all messages below this number.
    pub(crate) fn has_looked_through(&self, reader: Reader, end: u64) -> bool {
        let seeker = self.all.get(&reader).and_then(|consumer| self.seekers.find(consumer.seeker?));
        seeker.is_some_and(|seeker| seeker.is_at(end))
    }

    /// Notes that a new message was offered to all selecting consumers that can take more and had looked at
    /// everything before `end`: they do not want it. Returns whether some seeker still has to see the
    /// message: a browser, or one that drops what it does not want.
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

    /// The number below which all seekers that can take more have looked at the messages of a priority.
    pub(crate) fn least_mark(&self, priority: u8) -> u64 {
        let waiting = self.turns.values();
        let waiting = waiting.filter_map(|reader| self.seekers.find(self.all.get(reader)?.seeker?));
        waiting.map(|seeker| seeker.mark(priority)).min().unwrap_or(u64::MAX)
    }

    /// Notes that a message was released.
    pub(crate) fn note_returned(&mut self, priority: u8, sequence: u64) {
        if self.seekers_len > 0 {
            self.seekers.all_mut().for_each(|seeker| seeker.note_returned(priority, sequence));
        }
    }

    /// Whether this consumer gets deliveries, as the single active one or one of all.
    pub(crate) fn may_be_served(&self, reader: Reader) -> bool {
        let Some(consumer) = self.all.get(&reader) else { return false };
        !self.is_single_active || self.active == Some(reader) || consumer.is_browser
    }

    /// Notes that the consumer in turn was served with this message: the next of its priority comes.
    pub(crate) fn served(&mut self, reader: Reader, message: &MessageView<'_>) {
        if let Some(groups) = &mut self.groups
            && self.all.get(&reader).is_some_and(|consumer| !consumer.is_browser)
        {
            let passed = groups.give(reader, message);
            self.note_freed(passed);
        }
        self.served_in_turn(reader);
    }

    /// Notes that the consumer in turn cannot take more until it is woken.
    pub(crate) fn wait(&mut self, reader: Reader) {
        let Some(consumer) = self.all.get_mut(&reader) else { return };
        if let Some(turn) = consumer.turn.take() {
            self.turns.remove(&turn);
            self.plain_turns -= usize::from(consumer.seeker.is_none());
        }
    }

    /// Notes that a consumer can take more again.
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

    /// Whether a consumer may be given a message, and wants it.
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
