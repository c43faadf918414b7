//! Messages that have a number and are not in their stream yet, and the messages that leave with them.
//!
//! What leaves is decided here, before the message is recorded: its record tells it, so that a restart finds the stream
//! with the new message and without those that gave way, or as it was before.

use std::collections::VecDeque;

use super::ahead::Ahead;
use super::removals::{Arriving, LengthLimits, Removals};
use crate::index::Index;
use crate::message::StreamPublish;

/// Messages that are about to enter a stream, in order.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    waiting: VecDeque<Arriving>,
    /// What changes with all of them but the last.
    ahead: Ahead,
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
        if limits.are_some() {
            self.ahead.arrive(index, &self.waiting);
        }
        self.waiting.push_back(arriving);
        if limits.are_some() {
            self.ahead.replace(index, &self.waiting);
            let dropped = self.ahead.give_way(index, &self.waiting, limits);
            self.waiting.back_mut().into_iter().for_each(|last| last.removals.dropped.extend(&dropped));
        }
        sequence
    }

    /// The messages that leave with the last arrival, if any do.
    pub(crate) fn removals_of_last(&self) -> Option<&Removals> {
        self.waiting.back().map(|last| &last.removals).filter(|removals| !removals.is_empty())
    }

    /// Gives up the arrivals, whose numbers are free again.
    pub(crate) fn give_up(&mut self) {
        self.waiting.clear();
        self.ahead.clear();
    }

    /// Takes the first arrival, which enters the stream now.
    pub(crate) fn enter(&mut self) -> Arriving {
        self.ahead.clear();
        self.waiting.pop_front().unwrap_or_default()
    }

    /// Gives back the memory of an arrival that has entered.
    pub(crate) fn reuse(&mut self, arriving: Arriving) {
        self.spare = arriving;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Rollup;

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

    /// What leaves with each arrival, found by letting them enter one after the other.
    fn dropped_one_by_one(
        stored: &[&str],
        limits: LengthLimits,
        arrivals: &[(&str, u32, Option<Rollup>)],
    ) -> Vec<Vec<u64>> {
        let mut stream: Vec<(u64, &str, u32)> =
            (1..).zip(stored).map(|(sequence, subject)| (sequence, *subject, 10)).collect();
        let mut of_each = Vec::new();
        for (sequence, (subject, bytes, rollup)) in (stored.len() as u64 + 1..).zip(arrivals) {
            stream.retain(|one| match rollup {
                Some(Rollup::All) => false,
                Some(Rollup::Subject) => one.1 != *subject,
                None => true,
            });
            stream.push((sequence, subject, *bytes));
            let mut dropped = Vec::new();
            let count = stream.iter().filter(|one| one.1 == *subject).count() as u64;
            let beyond = limits.per_subject.map_or(0, |max| count.saturating_sub(max));
            for _ in 0..beyond {
                let at = stream.iter().position(|one| one.1 == *subject).expect("it is beyond");
                dropped.push(stream.remove(at).0);
            }
            while limits.are_exceeded(stream.len() as u64, stream.iter().map(|one| u64::from(one.2)).sum()) {
                dropped.push(stream.remove(0).0);
            }
            of_each.push(dropped);
        }
        of_each
    }

    fn rollups() -> impl Strategy<Value = Option<Rollup>> {
        prop_oneof![8 => Just(None), 1 => Just(Some(Rollup::Subject)), 1 => Just(Some(Rollup::All))]
    }

    proptest! {
        #[test]
        fn what_leaves_with_many_is_what_leaves_with_one_after_the_other(
            stored in proptest::collection::vec(prop_oneof!["a", "b", "c"], 0..12),
            limits in (
                proptest::option::of(1u64..8),
                proptest::option::of(1u64..60),
                proptest::option::of(1u64..4),
            ),
            arrivals in proptest::collection::vec((prop_oneof!["a", "b", "d"], 0u32..25, rollups()), 1..20),
        ) {
            let (messages, bytes, per_subject) = limits;
            let limits = LengthLimits { messages, bytes, per_subject };
            let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
            let arrivals: Vec<_> =
                arrivals.iter().map(|(subject, bytes, rollup)| (subject.as_str(), *bytes, *rollup)).collect();
            let expected = dropped_one_by_one(&stored, limits, &arrivals);
            prop_assert_eq!(dropped(&stored, limits, &arrivals), expected);
        }
    }
}
