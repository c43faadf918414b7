//! Answers of one session that wait for the journal, in their order, and the readers that wait for them.

use std::collections::VecDeque;

use crate::confirm::{Confirm, Level, Progress};
use crate::id::ReaderId;

/// An answer as it waits.
#[derive(Debug)]
pub(super) enum Answer {
    /// Frames that the protocol wrote.
    Bytes(Vec<u8>),
    /// The answer to publishes, to be written with others like it.
    Publishes(AnsweredPublishes),
}

/// Publishes whose numbers follow each other and that have the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnsweredPublishes {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) is_refused: bool,
}

impl AnsweredPublishes {
    /// How many they are.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.last.saturating_sub(self.first)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Adds those that follow, if they have the same answer; false where they do not.
    pub(super) fn join(&mut self, next: AnsweredPublishes) -> bool {
        let joins = self.last.checked_add(1) == Some(next.first) && self.is_refused == next.is_refused;
        if joins {
            self.last = next.last;
        }
        joins
    }
}

/// An answer that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) confirm: Confirm,
    /// The level that the answer promises, if it is a confirm.
    pub(super) promised: Option<Level>,
    pub(super) answer: Answer,
}

/// The answers of a session that wait.
#[derive(Debug, Default)]
pub(super) struct Answers {
    held: VecDeque<Held>,
    /// How many there were before the first of these.
    before: u64,
    /// Readers that get nothing before so many have left, in this order.
    starting: VecDeque<(u64, ReaderId)>,
    /// All publishes up to this number are answered.
    pub(super) answered_through: u64,
}

impl Answers {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Tells whether an answer has to wait for nothing.
    pub(super) fn may_pass(&self, confirm: Confirm, journal: Progress) -> bool {
        self.held.is_empty() && confirm.is_reached(journal)
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Takes the next that need not wait any more.
    pub(super) fn pop(&mut self, journal: Progress) -> Option<Held> {
        let held = self.held.pop_front_if(|held| held.confirm.is_reached(journal))?;
        self.before += 1;
        Some(held)
    }

    /// Has a reader wait until those that are held now have left; false if there are none.
    pub(super) fn start_behind(&mut self, reader: ReaderId) -> bool {
        if !self.held.is_empty() {
            self.starting.push_back((self.before + self.held.len() as u64, reader));
        }
        !self.held.is_empty()
    }

    /// Takes the next reader that need not wait any more.
    pub(super) fn pop_started(&mut self) -> Option<ReaderId> {
        loop {
            let (_, reader) = self.starting.pop_front_if(|(answers, _)| *answers <= self.before)?;
            // One that has to wait for a later answer too is not there yet.
            if self.starting.iter().all(|(_, waiting)| *waiting != reader) {
                return Some(reader);
            }
        }
    }

    /// Tells whether the last of them waits for no more than that the journal is written.
    pub(super) fn wait_for_write(&self, journal: Progress) -> bool {
        self.held.back().is_some_and(|held| held.confirm.synced <= journal.synced)
    }

    /// Drops them: nobody hears them any more.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.starting.clear();
    }
}
