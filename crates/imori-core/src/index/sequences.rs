//! The messages of a stream by sequence number: the subject and the size of each.
//!
//! Only numbers that have a message take memory, about ten bytes each. They are kept in chunks of neighbours, in
//! which a message is found by binary search.

use std::collections::{BTreeMap, VecDeque};

/// Sequence numbers of a chunk.
const CHUNK: u64 = 4096;

/// The index knows a message by this: the number of its subject, and its size in bytes.
pub(super) type Fact = (u32, u32);

/// The messages of a stream, by sequence number.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    /// By the first number of the chunk, divided by [`CHUNK`]; none is empty.
    chunks: BTreeMap<u64, Chunk>,
    len: u64,
}

/// The messages of one chunk, by rising number.
#[derive(Debug, Default)]
struct Chunk {
    numbers: VecDeque<u16>,
    subjects: VecDeque<u32>,
    bytes: VecDeque<u32>,
}

impl Sequences {
    /// Number of messages.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Adds a message, unless there is one with its number.
    pub(super) fn insert(&mut self, number: u64, fact: Fact) -> bool {
        let is_new = self.chunks.entry(number / CHUNK).or_default().insert(within(number), fact);
        self.len += u64::from(is_new);
        is_new
    }

    /// Removes a message.
    pub(super) fn remove(&mut self, number: u64) -> Option<Fact> {
        let chunk = self.chunks.get_mut(&(number / CHUNK))?;
        let fact = chunk.remove(within(number))?;
        if chunk.numbers.is_empty() {
            self.chunks.remove(&(number / CHUNK));
        }
        self.len -= 1;
        Some(fact)
    }

    /// The message with this number.
    pub(super) fn get(&self, number: u64) -> Option<Fact> {
        self.chunks.get(&(number / CHUNK))?.get(within(number))
    }

    /// The lowest number from `from` on, and its message.
    pub(super) fn next(&self, from: u64) -> Option<(u64, Fact)> {
        let own = self.chunks.get(&(from / CHUNK)).and_then(|chunk| chunk.next(within(from)));
        if let Some((within, fact)) = own {
            return Some((from / CHUNK * CHUNK + u64::from(within), fact));
        }
        let (at, chunk) = self.chunks.range(from / CHUNK + 1..).next()?;
        chunk.next(0).map(|(within, fact)| (at * CHUNK + u64::from(within), fact))
    }

    /// Number of messages from `from` on.
    pub(super) fn count_from(&self, from: u64) -> u64 {
        if from == 0 {
            return self.len;
        }
        let own = self.chunks.get(&(from / CHUNK)).map_or(0, |chunk| chunk.len_from(within(from)));
        let later = self.chunks.range(from / CHUNK + 1..).map(|(_, chunk)| chunk.numbers.len());
        (own + later.sum::<usize>()) as u64
    }
}

fn within(number: u64) -> u16 {
    (number % CHUNK) as u16
}

impl Chunk {
    /// Index of the first message from `number` on.
    fn at(&self, number: u16) -> usize {
        // Messages come with rising numbers, so that most are added at the end.
        match self.numbers.back() {
            Some(last) if *last < number => self.numbers.len(),
            _ => self.numbers.partition_point(|own| *own < number),
        }
    }

    fn insert(&mut self, number: u16, (subject, bytes): Fact) -> bool {
        let at = self.at(number);
        if self.numbers.get(at) == Some(&number) {
            return false;
        }
        self.numbers.insert(at, number);
        self.subjects.insert(at, subject);
        self.bytes.insert(at, bytes);
        true
    }

    fn remove(&mut self, number: u16) -> Option<Fact> {
        let at = self.at(number);
        self.numbers.get(at).filter(|own| **own == number)?;
        self.numbers.remove(at);
        self.subjects.remove(at).zip(self.bytes.remove(at))
    }

    fn get(&self, number: u16) -> Option<Fact> {
        self.next(number).filter(|(own, _)| *own == number).map(|(_, fact)| fact)
    }

    fn next(&self, from: u16) -> Option<(u16, Fact)> {
        let at = self.at(from);
        let fact = self.subjects.get(at).copied().zip(self.bytes.get(at).copied());
        self.numbers.get(at).copied().zip(fact)
    }

    fn len_from(&self, from: u16) -> usize {
        self.numbers.len() - self.at(from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_messages_are_a_map(steps in proptest::collection::vec((0u64..20_000, any::<bool>()), 0..300)) {
            let (mut sequences, mut map) = (Sequences::default(), BTreeMap::<u64, Fact>::new());
            for (number, is_added) in steps {
                let fact = (number as u32 / 7, number as u32 + 1);
                if is_added {
                    prop_assert_eq!(sequences.insert(number, fact), map.insert(number, fact).is_none());
                } else {
                    prop_assert_eq!(sequences.remove(number), map.remove(&number));
                }
                prop_assert_eq!(sequences.get(number), map.get(&number).copied());
                let next = map.range(number..).next().map(|(number, fact)| (*number, *fact));
                prop_assert_eq!(sequences.next(number), next);
                prop_assert_eq!(sequences.count_from(number), map.range(number..).count() as u64);
            }
            prop_assert_eq!(sequences.len(), map.len() as u64);
        }
    }

    #[test]
    fn the_highest_number_has_nothing_behind_it() {
        let mut sequences = Sequences::default();
        sequences.insert(u64::MAX, (1, 2));
        assert_eq!((sequences.next(5), sequences.count_from(u64::MAX)), (Some((u64::MAX, (1, 2))), 1));
    }
}
