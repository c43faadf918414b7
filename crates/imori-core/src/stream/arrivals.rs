//! Messages that have a number and are not in their stream yet, and the messages that leave with them.
//!
//! What leaves is decided here, before the message is recorded: its record tells it, so that a restart finds the stream
//! with the new message and without those that gave way, or as it was before.

use std::collections::{BTreeSet, VecDeque};

use crate::index::Index;
use crate::message::{Rollup, StreamPublish};

/// The limits that make messages leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthLimits {
    pub(crate) messages: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) per_subject: Option<u64>,
}

impl LengthLimits {
    fn are_some(&self) -> bool {
        self.messages.is_some() || self.bytes.is_some() || self.per_subject.is_some()
    }

    /// Whether a stream of this length is too long.
    fn are_exceeded(&self, len: u64, bytes: u64) -> bool {
        self.messages.is_some_and(|max| len > max) || self.bytes.is_some_and(|max| bytes > max)
    }
}

/// The messages that leave a stream with the arrival of another.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Removals {
    /// Earlier messages that it replaces.
    pub rollup: Option<Rollup>,
    /// The subject of the schedule that it ends, whose earlier messages go.
    pub ended_schedule: Option<Box<[u8]>>,
    /// Messages that give way to it, by sequence number.
    pub dropped: Vec<u64>,
}

impl Removals {
    /// Whether no message leaves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rollup.is_none() && self.ended_schedule.is_none() && self.dropped.is_empty()
    }

    fn clear(&mut self) {
        (self.rollup, self.ended_schedule) = (None, None);
        self.dropped.clear();
    }
}

/// A message that has a number and is not in the stream yet.
#[derive(Debug, Default)]
pub(crate) struct Arriving {
    sequence: u64,
    subject: Vec<u8>,
    bytes: u32,
    pub(crate) removals: Removals,
}

impl Arriving {
    fn size(&self) -> (u64, u32) {
        (self.sequence, self.bytes)
    }
}

/// Messages that are about to enter a stream, in order.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    waiting: VecDeque<Arriving>,
    /// The memory of an earlier arrival, for the next one.
    spare: Arriving,
}

impl Arrivals {
    /// Gives a message the number behind those that wait; `next` is the first free one. Decides which messages leave
    /// with it.
    pub(crate) fn add(
        &mut self,
        (next, index): (u64, &Index),
        limits: LengthLimits,
        (subject, bytes): (&[u8], u32),
        asked: Option<&StreamPublish<'_>>,
    ) -> u64 {
        let mut arriving = std::mem::take(&mut self.spare);
        arriving.sequence = next + self.waiting.len() as u64;
        arriving.subject.clear();
        arriving.subject.extend_from_slice(subject);
        arriving.bytes = bytes;
        arriving.removals.clear();
        if let Some(asked) = asked {
            arriving.removals.rollup = asked.rollup;
            arriving.removals.ended_schedule = asked.ended_schedule.as_deref().map(Box::from);
            arriving.removals.dropped.extend(asked.replaced);
        }
        let sequence = arriving.sequence;
        self.waiting.push_back(arriving);
        if limits.are_some() {
            let dropped = self.oldest_beyond(index, limits);
            self.waiting.back_mut().into_iter().for_each(|last| last.removals.dropped.extend(&dropped));
        }
        sequence
    }

    /// The messages that give way to the last arrival, as if all arrivals were in the stream.
    fn oldest_beyond(&self, index: &Index, limits: LengthLimits) -> Vec<u64> {
        let Some(last) = self.waiting.back() else { return Vec::new() };
        let gone = self.gone(index);
        let waiting = self.waiting.iter().filter(|one| !gone.contains(&one.sequence));
        let lost = gone.iter().filter_map(|sequence| index.size(*sequence));
        let mut len = index.len() - lost.clone().count() as u64 + waiting.clone().count() as u64;
        let mut bytes = index.bytes() - lost.map(u64::from).sum::<u64>()
            + waiting.clone().map(|one| u64::from(one.bytes)).sum::<u64>();
        let stored = |sequence: u64| (sequence, index.size(sequence).unwrap_or(0));
        let mut dropped = Vec::new();
        if let Some(max) = limits.per_subject {
            let subject = last.subject.as_slice();
            let of_gone = gone.iter().filter(|sequence| index.subject(**sequence) == Some(subject)).count();
            let own = waiting.clone().filter(|one| one.subject == subject);
            let count = index.count_of(subject) - of_gone as u64 + own.clone().count() as u64;
            let beyond = usize::try_from(count.saturating_sub(max)).unwrap_or(usize::MAX);
            let stays = index.of_subject(subject).filter(|sequence| !gone.contains(sequence));
            for (sequence, size) in stays.map(stored).chain(own.map(Arriving::size)).take(beyond) {
                (len, bytes) = (len - 1, bytes - u64::from(size));
                dropped.push(sequence);
            }
        }
        if limits.are_exceeded(len, bytes) {
            let of_subject: BTreeSet<u64> = dropped.iter().copied().collect();
            let all = index.all().map(stored).chain(waiting.map(Arriving::size));
            for (sequence, size) in all {
                if gone.contains(&sequence) || of_subject.contains(&sequence) {
                    continue;
                }
                (len, bytes) = (len - 1, bytes - u64::from(size));
                dropped.push(sequence);
                if !limits.are_exceeded(len, bytes) {
                    break;
                }
            }
        }
        dropped
    }

    /// The messages that leave with the arrivals, as far as is decided.
    fn gone(&self, index: &Index) -> BTreeSet<u64> {
        let mut gone = BTreeSet::new();
        for (at, one) in self.waiting.iter().enumerate() {
            let Removals { rollup, ended_schedule, dropped } = &one.removals;
            gone.extend(dropped);
            if *rollup == Some(Rollup::All) {
                gone.extend(index.all().chain(self.waiting.iter().take(at).map(|one| one.sequence)));
            }
            let own = rollup.filter(|rollup| *rollup == Rollup::Subject).map(|_| one.subject.as_slice());
            for subject in own.into_iter().chain(ended_schedule.as_deref()) {
                let earlier = self.waiting.iter().take(at).filter(|one| one.subject == subject);
                gone.extend(index.of_subject(subject).chain(earlier.map(|one| one.sequence)));
            }
        }
        gone
    }

    /// The messages that leave with the last arrival, if any do.
    pub(crate) fn removals_of_last(&self) -> Option<&Removals> {
        self.waiting.back().map(|last| &last.removals).filter(|removals| !removals.is_empty())
    }

    /// Gives up the arrivals, whose numbers are free again.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
    }

    /// Takes the first arrival, which enters the stream now.
    pub(crate) fn enter(&mut self) -> Arriving {
        self.waiting.pop_front().unwrap_or_default()
    }

    /// Gives back the memory of an arrival that has entered.
    pub(crate) fn reuse(&mut self, arriving: Arriving) {
        self.spare = arriving;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: LengthLimits = LengthLimits { messages: None, bytes: None, per_subject: None };

    /// An index of messages from 1 on, each of ten bytes.
    fn index(subjects: &[&str]) -> Index {
        let mut index = Index::default();
        for (sequence, subject) in (1..).zip(subjects) {
            index.insert(sequence, subject.as_bytes(), 10);
        }
        index
    }

    /// What leaves with each of these arrivals: subject, bytes and rollup.
    fn dropped(
        stored: &[&str],
        limits: LengthLimits,
        arrivals: &[(&str, u32, Option<Rollup>)],
    ) -> Vec<Vec<u64>> {
        let (index, mut all) = (index(stored), Arrivals::default());
        let mut of_each = Vec::new();
        for (subject, bytes, rollup) in arrivals {
            let asked = StreamPublish { rollup: *rollup, ..StreamPublish::default() };
            let next = stored.len() as u64 + 1;
            all.add((next, &index), limits, (subject.as_bytes(), *bytes), Some(&asked));
            of_each.push(all.waiting.back().map(|last| last.removals.dropped.clone()).unwrap_or_default());
        }
        of_each
    }

    #[test]
    fn the_oldest_messages_give_way() {
        let stored = ["a", "b", "a", "b"];
        let messages = LengthLimits { messages: Some(4), ..NONE };
        let bytes = LengthLimits { bytes: Some(40), ..NONE };
        let per_subject = LengthLimits { per_subject: Some(2), ..NONE };
        let both = LengthLimits { messages: Some(3), ..per_subject };
        let (plain, all, own) = (None, Some(Rollup::All), Some(Rollup::Subject));
        for (limits, arrivals, expected) in [
            (NONE, &[("a", 10, plain)][..], &[&[][..]][..]),
            (messages, &[("c", 10, plain), ("c", 10, plain)], &[&[1], &[2]]),
            (bytes, &[("c", 15, plain)], &[&[1, 2]]),
            (bytes, &[("c", 41, plain)], &[&[1, 2, 3, 4, 5]]),
            (per_subject, &[("a", 1, plain), ("b", 1, plain), ("a", 1, plain)], &[&[1], &[2], &[3]]),
            (both, &[("a", 10, plain)], &[&[1, 2]]),
            (messages, &[("a", 10, own), ("c", 10, plain), ("c", 10, plain)], &[&[], &[], &[2]]),
            (messages, &[("a", 10, all), ("a", 10, plain)], &[&[], &[]]),
            (
                LengthLimits { per_subject: Some(1), ..NONE },
                &[("c", 1, plain), ("c", 1, plain)],
                &[&[], &[5]],
            ),
        ] {
            let of_each = dropped(&stored, limits, arrivals);
            assert_eq!(of_each, expected, "{limits:?} {arrivals:?}");
        }
    }
}
