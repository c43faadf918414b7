//! The index of a stream's messages, by sequence number and by subject. It knows no bodies.

use std::sync::Arc;

use super::filter::Filter;
use super::sequences::Sequences;
use super::subjects::Subjects;

/// The messages that a stream has.
#[derive(Debug, Default)]
pub struct Index {
    sequences: Sequences,
    subjects: Subjects,
    bytes: u64,
}

impl Index {
    /// Number of messages.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.sequences.len()
    }

    /// Whether there is no message.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all messages.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of subjects that have messages.
    #[must_use]
    pub fn subject_count(&self) -> usize {
        self.subjects.len()
    }

    /// Adds a message of `bytes` bytes. Does nothing if there is one with its number.
    pub(crate) fn insert(&mut self, sequence: u64, subject: &[u8], bytes: u32) {
        if self.contains(sequence) {
            return;
        }
        let number = self.subjects.insert(subject, sequence);
        self.sequences.insert(sequence, (number, bytes));
        self.bytes += u64::from(bytes);
    }

    /// Removes a message; returns its subject.
    pub(crate) fn remove(&mut self, sequence: u64) -> Option<Arc<[u8]>> {
        let (number, bytes) = self.sequences.remove(sequence)?;
        self.bytes -= u64::from(bytes);
        self.subjects.remove(number, sequence)
    }

    /// Whether there is a message with this number.
    #[must_use]
    pub fn contains(&self, sequence: u64) -> bool {
        self.sequences.get(sequence).is_some()
    }

    /// The subject of a message.
    pub(crate) fn subject(&self, sequence: u64) -> Option<&[u8]> {
        self.subjects.name(self.sequences.get(sequence)?.0)
    }

    /// The size of a message in bytes.
    pub(crate) fn size(&self, sequence: u64) -> Option<u32> {
        self.sequences.get(sequence).map(|(_, bytes)| bytes)
    }

    /// The number of the first message.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.sequences.next(0).map(|(sequence, _)| sequence)
    }

    /// The first message from `from` on whose subject a filter takes.
    #[must_use]
    pub fn next(&self, filter: &Filter, from: u64) -> Option<u64> {
        if let Some(subject) = filter.subject() {
            return self.subjects.next(subject, from);
        }
        let mut next = self.sequences.next(from);
        while let Some((sequence, (number, _))) = next {
            if filter.is_all() || self.subjects.name(number).is_some_and(|subject| filter.takes(subject)) {
                return Some(sequence);
            }
            next = self.sequences.next(sequence.checked_add(1)?);
        }
        None
    }

    /// Number of messages from `from` on whose subject a filter takes.
    #[must_use]
    pub fn count_from(&self, filter: &Filter, from: u64) -> u64 {
        match filter.is_all() {
            true => self.sequences.count_from(from),
            false => self.subjects.count_from(filter, from),
        }
    }

    /// Number of messages of a subject.
    #[must_use]
    pub fn count_of(&self, subject: &[u8]) -> u64 {
        self.subjects.count(subject)
    }

    /// The oldest message of a subject.
    #[must_use]
    pub fn first_of(&self, subject: &[u8]) -> Option<u64> {
        self.subjects.first(subject)
    }

    /// The first message with this number or a higher one.
    pub(crate) fn next_from(&self, sequence: u64) -> Option<u64> {
        self.sequences.next(sequence).map(|(sequence, _)| sequence)
    }

    /// The messages from `from` on by rising number.
    pub(crate) fn all_from(&self, from: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.next_from(from), |last| self.next_from(last.checked_add(1)?))
    }

    /// The messages of a subject from `from` on by rising number.
    pub(crate) fn of_subject_from(&self, subject: &[u8], from: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(self.subjects.next(subject, from), |last| {
            self.subjects.next(subject, last.checked_add(1)?)
        })
    }

    /// The newest message of a subject.
    #[must_use]
    pub fn last_of(&self, subject: &[u8]) -> Option<u64> {
        self.subjects.last(subject)
    }

    /// The newest message up to `up_to` of each subject that a filter takes, by rising number.
    #[must_use]
    pub fn last_of_each(&self, filter: &Filter, up_to: u64) -> Vec<u64> {
        self.subjects.last_of_each(filter, up_to)
    }

    /// The messages whose subject a filter takes, by rising number.
    #[must_use]
    pub fn sequences_of(&self, filter: &Filter) -> Vec<u64> {
        self.subjects.sequences(filter)
    }

    /// The subjects that a filter takes, each with its number of messages, in no particular order.
    pub fn counts(&self, filter: &Filter) -> impl Iterator<Item = (&[u8], u64)> {
        self.subjects.counts(filter)
    }

    /// The numbers between the first message and `last` that have no message, at most `max` of them.
    #[must_use]
    pub fn removed(&self, last: u64, max: usize) -> Vec<u64> {
        let Some(first) = self.first() else { return Vec::new() };
        (first..=last).filter(|sequence| !self.contains(*sequence)).take(max).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SUBJECTS: [&str; 5] = ["a.x", "a.y", "b", "a.x.z", "c.d"];
    const FILTERS: [&[&[u8]]; 5] = [&[b">"], &[b"a.*"], &[b"b"], &[b"a.>", b"c.d"], &[b"none"]];

    proptest! {
        #[test]
        fn every_question_is_answered_as_by_a_plain_map(
            steps in proptest::collection::vec((1u64..9_000, 0usize..5, any::<bool>()), 0..120),
            from in 0u64..9_000,
        ) {
            let (mut index, mut map) = (Index::default(), BTreeMap::<u64, (&str, u32)>::new());
            for (sequence, subject, is_added) in steps {
                let (subject, bytes) = (SUBJECTS[subject], sequence as u32 % 50);
                if is_added {
                    index.insert(sequence, subject.as_bytes(), bytes);
                    map.entry(sequence).or_insert((subject, bytes));
                } else {
                    let removed = index.remove(sequence).map(|subject| subject.to_vec());
                    prop_assert_eq!(removed, map.remove(&sequence).map(|(subject, _)| subject.as_bytes().to_vec()));
                }
            }
            prop_assert_eq!(index.len(), map.len() as u64);
            prop_assert_eq!(index.bytes(), map.values().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>());
            prop_assert_eq!(index.first(), map.keys().next().copied());
            for texts in FILTERS {
                let filter = Filter::of(texts).expect("it is valid");
                let of = |from: u64| map.range(from..).filter(|(_, (subject, _))| filter.takes(subject.as_bytes()));
                prop_assert_eq!(index.next(&filter, from), of(from).next().map(|(sequence, _)| *sequence));
                prop_assert_eq!(index.count_from(&filter, from), of(from).count() as u64);
                let all: Vec<u64> = of(0).map(|(sequence, _)| *sequence).collect();
                prop_assert_eq!(index.sequences_of(&filter), all);
                let mut last: BTreeMap<&str, u64> = BTreeMap::new();
                of(0).filter(|(sequence, _)| **sequence <= from).for_each(|(sequence, (subject, _))| {
                    last.insert(subject, *sequence);
                });
                let mut last: Vec<u64> = last.into_values().collect();
                last.sort_unstable();
                prop_assert_eq!(index.last_of_each(&filter, from), last);
            }
            for subject in SUBJECTS {
                let of: Vec<u64> = map.iter().filter(|(_, fact)| fact.0 == subject).map(|(own, _)| *own).collect();
                prop_assert_eq!(index.first_of(subject.as_bytes()), of.first().copied());
                prop_assert_eq!(index.last_of(subject.as_bytes()), of.last().copied());
                prop_assert_eq!(index.count_of(subject.as_bytes()), of.len() as u64);
            }
            let last = map.keys().next_back().copied().unwrap_or(0);
            let first = map.keys().next().copied().unwrap_or(1);
            let gaps: Vec<u64> = (first..=last).filter(|sequence| !map.contains_key(sequence)).collect();
            prop_assert_eq!(index.removed(last, usize::MAX), gaps);
        }
    }
}
