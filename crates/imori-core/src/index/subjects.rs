//! The subjects of a stream, each with the sequence numbers of its messages.

use std::collections::VecDeque;
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::filter::Filter;

/// The subjects that have messages. Each has a number, which is given again once the subject has none left.
#[derive(Debug, Default)]
pub(super) struct Subjects {
    numbers: HashMap<Arc<[u8]>, u32, FixedState>,
    all: Vec<Option<Subject>>,
    free: Vec<u32>,
}

/// A subject and the sequence numbers of its messages.
#[derive(Debug)]
struct Subject {
    name: Arc<[u8]>,
    messages: Messages,
}

/// Rising sequence numbers. Most subjects of a key-value bucket have one.
#[derive(Debug)]
enum Messages {
    One(u64),
    Many(VecDeque<u64>),
}

impl Messages {
    fn len(&self) -> usize {
        match self {
            Messages::One(_) => 1,
            Messages::Many(all) => all.len(),
        }
    }

    fn get(&self, at: usize) -> Option<u64> {
        match self {
            Messages::One(own) => (at == 0).then_some(*own),
            Messages::Many(all) => all.get(at).copied(),
        }
    }

    /// Index of the first message from `sequence` on.
    fn at(&self, sequence: u64) -> usize {
        match self {
            Messages::One(own) => usize::from(*own < sequence),
            Messages::Many(all) if all.back().is_some_and(|last| *last < sequence) => all.len(),
            Messages::Many(all) => all.partition_point(|own| *own < sequence),
        }
    }

    fn insert(&mut self, sequence: u64) {
        let at = self.at(sequence);
        match self {
            Messages::One(own) => {
                let mut all = VecDeque::from([*own]);
                all.insert(at, sequence);
                *self = Messages::Many(all);
            }
            Messages::Many(all) => all.insert(at, sequence),
        }
    }

    /// Removes a message, which must not be the only one.
    fn remove(&mut self, sequence: u64) {
        let at = self.at(sequence);
        let Messages::Many(all) = self else { return };
        if all.get(at) == Some(&sequence) {
            all.remove(at);
        }
        if let (1, Some(only)) = (all.len(), all.front().copied()) {
            *self = Messages::One(only);
        }
    }

    fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).filter_map(|at| self.get(at))
    }
}

impl Subjects {
    /// Number of subjects with messages.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Adds a message to a subject; returns the number of the subject.
    pub(super) fn insert(&mut self, subject: &[u8], sequence: u64) -> u32 {
        if let Some(number) = self.numbers.get(subject).copied() {
            if let Some(subject) = self.all.get_mut(number as usize).and_then(Option::as_mut) {
                subject.messages.insert(sequence);
            }
            return number;
        }
        let name: Arc<[u8]> = Arc::from(subject);
        let new = Subject { name: Arc::clone(&name), messages: Messages::One(sequence) };
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                self.all.push(None);
                // A stream of four billion subjects does not fit into memory.
                u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
            }
        };
        if let Some(place) = self.all.get_mut(number as usize) {
            *place = Some(new);
        }
        self.numbers.insert(name, number);
        number
    }

    /// Removes a message of the subject with this number; returns the subject's name.
    pub(super) fn remove(&mut self, number: u32, sequence: u64) -> Option<Arc<[u8]>> {
        let place = self.all.get_mut(number as usize)?;
        let subject = place.as_mut()?;
        let name = Arc::clone(&subject.name);
        if subject.messages.len() > 1 {
            subject.messages.remove(sequence);
        } else {
            *place = None;
            self.numbers.remove(&name);
            self.free.push(number);
        }
        Some(name)
    }

    /// The name of the subject with this number.
    pub(super) fn name(&self, number: u32) -> Option<&[u8]> {
        self.all.get(number as usize)?.as_ref().map(|subject| &*subject.name)
    }

    /// Number of messages of a subject.
    pub(super) fn count(&self, subject: &[u8]) -> u64 {
        self.messages(subject).map_or(0, |messages| messages.len() as u64)
    }

    /// The oldest message of a subject.
    pub(super) fn first(&self, subject: &[u8]) -> Option<u64> {
        self.messages(subject)?.get(0)
    }

    /// The newest message of a subject.
    pub(super) fn last(&self, subject: &[u8]) -> Option<u64> {
        self.messages(subject).and_then(|messages| messages.get(messages.len() - 1))
    }

    /// The first message of a subject from `from` on.
    pub(super) fn next(&self, subject: &[u8], from: u64) -> Option<u64> {
        self.messages(subject).and_then(|messages| messages.get(messages.at(from)))
    }

    /// The subjects that a filter takes, each with its number of messages, in no particular order.
    pub(super) fn counts(&self, filter: &Filter) -> impl Iterator<Item = (&[u8], u64)> {
        self.matching(filter).map(|subject| (&*subject.name, subject.messages.len() as u64))
    }

    /// Number of messages from `from` on whose subject a filter takes.
    pub(super) fn count_from(&self, filter: &Filter, from: u64) -> u64 {
        let count = |subject: &Subject| subject.messages.len() - subject.messages.at(from);
        self.matching(filter).map(count).sum::<usize>() as u64
    }

    /// The newest message up to `up_to` of each subject that a filter takes, by rising sequence number.
    pub(super) fn last_of_each(&self, filter: &Filter, up_to: u64) -> Vec<u64> {
        let last = |subject: &Subject| {
            let behind = subject.messages.at(up_to.saturating_add(1));
            behind.checked_sub(1).and_then(|at| subject.messages.get(at))
        };
        let mut all: Vec<u64> = self.matching(filter).filter_map(last).collect();
        all.sort_unstable();
        all
    }

    /// The messages whose subject a filter takes, by rising sequence number.
    pub(super) fn sequences(&self, filter: &Filter) -> Vec<u64> {
        let mut all: Vec<u64> = self.matching(filter).flat_map(|subject| subject.messages.iter()).collect();
        all.sort_unstable();
        all
    }

    fn messages(&self, subject: &[u8]) -> Option<&Messages> {
        let number = self.numbers.get(subject)?;
        self.all.get(*number as usize)?.as_ref().map(|subject| &subject.messages)
    }

    fn matching(&self, filter: &Filter) -> impl Iterator<Item = &Subject> {
        let one = filter.subject();
        let of = |number: &u32| self.all.get(*number as usize).and_then(Option::as_ref);
        let named = one.and_then(|subject| of(self.numbers.get(subject)?));
        let all =
            self.all.iter().flatten().filter(move |subject| one.is_none() && filter.takes(&subject.name));
        named.into_iter().chain(all)
    }
}
