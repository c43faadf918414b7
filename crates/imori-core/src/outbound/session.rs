//! The conversation in which deliveries are numbered, and those that are not settled.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::delivery::Place;
use crate::id::ReaderId;

/// A session of a connection: STOMP and NATS have one, AMQP has many.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u16);

/// A delivery that its reader has not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsettled {
    /// Its number in the session.
    pub number: u64,
    /// Where it came from.
    pub place: Place,
    /// Who has it.
    pub reader: ReaderId,
}

/// Which deliveries a client means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// This one.
    One(u64),
    /// This one and all before it in the session.
    UpTo(u64),
    /// This one and all before it of one reader.
    UpToOf(u64, ReaderId),
}

impl Numbers {
    /// The number that is named.
    pub fn last(self) -> u64 {
        let (Numbers::One(number) | Numbers::UpTo(number) | Numbers::UpToOf(number, _)) = self;
        number
    }

    /// Tells whether a delivery up to the named one is meant.
    fn mean(self, unsettled: &Unsettled) -> bool {
        match self {
            Numbers::One(_) | Numbers::UpTo(_) => true,
            Numbers::UpToOf(_, reader) => unsettled.reader == reader,
        }
    }
}

/// Deliveries of one session: a number each, rising by one.
#[derive(Debug, Default)]
pub(super) struct Session {
    last_number: u64,
    /// By rising number; `None` where a later one was settled first.
    unsettled: VecDeque<(u64, Option<Unsettled>)>,
    unsettled_len: usize,
}

impl Session {
    /// The number of the next delivery.
    pub(super) fn next_number(&self) -> u64 {
        self.last_number + 1
    }

    /// Notes that a delivery left that needs no settling.
    pub(super) fn sent(&mut self) {
        self.last_number += 1;
    }

    /// Notes that a delivery left that has to be settled.
    pub(super) fn sent_unsettled(&mut self, place: Place, reader: ReaderId) {
        self.last_number += 1;
        let unsettled = Unsettled { number: self.last_number, place, reader };
        self.unsettled.push_back((self.last_number, Some(unsettled)));
        self.unsettled_len += 1;
    }

    /// The delivery of that number, if it is not settled.
    pub(super) fn find(&self, number: u64) -> Option<&Unsettled> {
        let index = self.unsettled.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.unsettled.get(index)?.1.as_ref()
    }

    /// How many are not settled.
    pub(super) fn unsettled_len(&self) -> usize {
        self.unsettled_len
    }

    /// Takes the deliveries that are meant, in order; none where the named one is not there.
    pub(super) fn settle(&mut self, numbers: Numbers) -> Vec<Unsettled> {
        let Some(range) = self.range(numbers) else {
            return Vec::new();
        };
        let mut taken = Vec::new();
        for (_, place) in self.unsettled.range_mut(range) {
            if place.as_ref().is_some_and(|unsettled| numbers.mean(unsettled)) {
                taken.extend(place.take());
            }
        }
        self.unsettled_len -= taken.len();
        while self.unsettled.front().is_some_and(|(_, unsettled)| unsettled.is_none()) {
            self.unsettled.pop_front();
        }
        if self.unsettled.is_empty() {
            self.unsettled.shrink_to(64);
        }
        taken
    }

    /// The deliveries that are meant, in order; none where the named one is not there.
    pub(super) fn meant(&self, numbers: Numbers) -> Vec<Unsettled> {
        let Some(range) = self.range(numbers) else {
            return Vec::new();
        };
        let meant = self.unsettled.range(range).filter_map(|(_, unsettled)| *unsettled);
        meant.filter(|unsettled| numbers.mean(unsettled)).collect()
    }

    fn range(&self, numbers: Numbers) -> Option<RangeInclusive<usize>> {
        let last = self.unsettled.binary_search_by_key(&numbers.last(), |(number, _)| *number).ok()?;
        self.unsettled.get(last)?.1.as_ref()?;
        let first = if matches!(numbers, Numbers::One(_)) { last } else { 0 };
        Some(first..=last)
    }

    /// Takes all that are not settled.
    pub(super) fn settle_all(&mut self) -> Vec<Unsettled> {
        self.unsettled_len = 0;
        self.unsettled.drain(..).filter_map(|(_, unsettled)| unsettled).collect()
    }
}
