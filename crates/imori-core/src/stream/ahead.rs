//! The length that a stream will have once the messages that wait have entered it.
//!
//! Kept as totals beside the index, so that each message of a long transaction costs the same, however many wait
//! before it and however many leave.

use std::collections::{BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::removals::{Arriving, LengthLimits};
use crate::index::Index;
use crate::message::Rollup;

/// What changes with the messages that wait.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// All messages before it leave with an arrival that replaces them all; 0 if none does.
    all_before: u64,
    /// The other messages that leave.
    leaving: BTreeSet<u64>,
    /// The stored messages that leave.
    leaving_stored: Length,
    /// The arrivals that stay.
    arriving: Length,
    /// No message before it stays.
    oldest: u64,
    subjects: HashMap<Vec<u8>, Subject, FixedState>,
}

/// The length of a part of a stream.
#[derive(Debug, Default, Clone, Copy)]
struct Length {
    messages: u64,
    bytes: u64,
}

impl Length {
    fn add(&mut self, bytes: u32) {
        *self = Length { messages: self.messages + 1, bytes: self.bytes + u64::from(bytes) };
    }

    fn sub(&mut self, bytes: u32) {
        *self = Length { messages: self.messages - 1, bytes: self.bytes - u64::from(bytes) };
    }
}

/// What changes in one subject.
#[derive(Debug, Default)]
struct Subject {
    /// The number of stored messages that leave.
    leaving_stored: u64,
    /// The arrivals that stay.
    arriving: VecDeque<u64>,
    /// No stored message before it stays.
    oldest: u64,
}

impl Ahead {
    /// Forgets the arrivals: they have entered, or will not come.
    pub(super) fn clear(&mut self) {
        *self = Ahead::default();
    }

    /// Counts the last of the arrivals, and takes away what leaves with it.
    pub(super) fn arrive(&mut self, index: &Index, waiting: &VecDeque<Arriving>) {
        let Some(last) = waiting.back() else { return };
        self.arriving.add(last.bytes);
        self.subject(&last.subject).arriving.push_back(last.sequence);
        for sequence in &last.removals.dropped {
            self.leave(index, waiting, *sequence);
        }
    }

    /// Takes away what the last of the arrivals replaces.
    pub(super) fn replace(&mut self, index: &Index, waiting: &VecDeque<Arriving>) {
        let Some(last) = waiting.back() else { return };
        for sequence in &last.removals.dropped {
            self.leave(index, waiting, *sequence);
        }
        if last.removals.rollup == Some(Rollup::All) {
            *self = Ahead {
                all_before: last.sequence,
                leaving_stored: Length { messages: index.len(), bytes: index.bytes() },
                oldest: last.sequence,
                ..Ahead::default()
            };
        }
        let own = last.removals.rollup.filter(|rollup| *rollup == Rollup::Subject);
        let own = own.map(|_| last.subject.as_slice());
        for subject in own.into_iter().chain(last.removals.ended_schedule.as_deref()) {
            let replaced: Vec<u64> = self.staying_of(index, subject).collect();
            replaced.into_iter().for_each(|sequence| self.leave(index, waiting, sequence));
        }
    }

    /// The messages that give way to the last of the arrivals, oldest first.
    pub(super) fn give_way(
        &mut self,
        index: &Index,
        waiting: &VecDeque<Arriving>,
        limits: LengthLimits,
    ) -> Vec<u64> {
        let Some(last) = waiting.back() else { return Vec::new() };
        let mut length = Length {
            messages: index.len() - self.leaving_stored.messages + self.arriving.messages,
            bytes: index.bytes() - self.leaving_stored.bytes + self.arriving.bytes,
        };
        length.add(last.bytes);
        let mut dropped = Vec::new();
        if let Some(max) = limits.per_subject {
            let beyond = (self.count_of(index, &last.subject) + 1).saturating_sub(max);
            let staying = self.staying_of(index, &last.subject).chain([last.sequence]);
            dropped.extend(staying.take(usize::try_from(beyond).unwrap_or(usize::MAX)));
            dropped.iter().for_each(|sequence| length.sub(size(index, waiting, *sequence)));
            if let (Some(own), Some(first)) = (self.subjects.get_mut(&*last.subject), dropped.first()) {
                own.oldest = *first;
            }
        }
        if !limits.are_exceeded(length.messages, length.bytes) {
            return dropped;
        }
        let of_subject = dropped.len();
        for sequence in self.staying(index, waiting).chain([last.sequence]) {
            let is_dropped =
                dropped.get(..of_subject).is_some_and(|own| own.binary_search(&sequence).is_ok());
            if is_dropped {
                continue;
            }
            dropped.push(sequence);
            length.sub(size(index, waiting, sequence));
            if !limits.are_exceeded(length.messages, length.bytes) {
                break;
            }
        }
        self.oldest = dropped.get(of_subject).copied().unwrap_or(self.oldest);
        dropped
    }

    fn leaves(&self, sequence: u64) -> bool {
        sequence < self.all_before || self.leaving.contains(&sequence)
    }

    fn subject(&mut self, subject: &[u8]) -> &mut Subject {
        self.subjects.entry_ref(subject).or_default()
    }

    /// Notes that a message, stored or arriving, leaves.
    fn leave(&mut self, index: &Index, waiting: &VecDeque<Arriving>, sequence: u64) {
        if self.leaves(sequence) {
            return;
        }
        let stored = index.subject(sequence).zip(index.size(sequence));
        if let Some((subject, bytes)) = stored {
            self.leaving_stored.add(bytes);
            self.subject(subject).leaving_stored += 1;
        } else if let Some(one) = arrival(waiting, sequence) {
            let arriving = &mut self.subject(&one.subject).arriving;
            if let Ok(at) = arriving.binary_search(&sequence) {
                arriving.remove(at);
                self.arriving.sub(one.bytes);
            }
        } else {
            return;
        }
        self.leaving.insert(sequence);
    }

    /// The number of messages of a subject that stay, without the last arrival.
    fn count_of(&self, index: &Index, subject: &[u8]) -> u64 {
        let stored = if self.all_before > 0 { 0 } else { index.count_of(subject) };
        self.subjects
            .get(subject)
            .map_or(stored, |own| stored - own.leaving_stored + own.arriving.len() as u64)
    }

    /// The messages of a subject that stay, oldest first, without the last arrival.
    fn staying_of<'a>(&'a self, index: &'a Index, subject: &'a [u8]) -> impl Iterator<Item = u64> + 'a {
        let own = self.subjects.get(subject);
        let from = own.map_or(0, |own| own.oldest).max(self.all_before);
        let stored = index.of_subject_from(subject, from).filter(|sequence| !self.leaves(*sequence));
        stored.chain(own.into_iter().flat_map(|own| own.arriving.iter().copied()))
    }

    /// The messages that stay, oldest first, without the last arrival.
    fn staying<'a>(
        &'a self,
        index: &'a Index,
        waiting: &'a VecDeque<Arriving>,
    ) -> impl Iterator<Item = u64> + 'a {
        let stored = index.all_from(self.oldest);
        let left = waiting.front().map_or(0, |first| self.oldest.saturating_sub(first.sequence));
        let arriving = waiting.iter().map(|one| one.sequence).take(waiting.len() - 1);
        stored
            .chain(arriving.skip(usize::try_from(left).unwrap_or(usize::MAX)))
            .filter(|sequence| !self.leaves(*sequence))
    }
}

fn size(index: &Index, waiting: &VecDeque<Arriving>, sequence: u64) -> u32 {
    index.size(sequence).or_else(|| Some(arrival(waiting, sequence)?.bytes)).unwrap_or(0)
}

fn arrival(waiting: &VecDeque<Arriving>, sequence: u64) -> Option<&Arriving> {
    let at = sequence.checked_sub(waiting.front()?.sequence)?;
    waiting.get(usize::try_from(at).ok()?)
}
