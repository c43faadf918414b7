//! Answers of a session that wait for the journal, in order, and the readers that start behind them.

use std::collections::VecDeque;

use crate::confirm::{Confirm, Level, Progress};
use crate::id::ReaderId;

/// An answer that waits.
#[derive(Debug)]
pub(super) enum Answer {
    /// Frames that the protocol has encoded.
    Bytes(Vec<u8>),
    /// The answer to publishes, to be encoded together with others like it.
    Publishes(AnsweredPublishes),
}

/// Consecutive publishes with the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AnsweredPublishes {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) is_refused: bool,
}

impl AnsweredPublishes {
    /// Number of publishes.
    pub(super) fn count(&self) -> usize {
        usize::try_from(self.last.saturating_sub(self.first)).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// Adds the publishes that follow directly, if they have the same answer; `false` if not.
    pub(super) fn join(&mut self, next: AnsweredPublishes) -> bool {
        let joins = self.last.checked_add(1) == Some(next.first) && self.is_refused == next.is_refused;
        if joins {
            self.last = next.last;
        }
        joins
    }
}

/// An answer that waits, with the progress of the journal that it waits for.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) confirm: Confirm,
    /// The level that the answer promises, if it is a confirm.
    pub(super) promised: Option<Level>,
    pub(super) answer: Answer,
}

/// The answers of a session that wait, in order.
#[derive(Debug, Default)]
pub(super) struct Answers {
    held: VecDeque<Held>,
    /// Number of answers that left before the first of these.
    before: u64,
    /// Readers in order, each with the number of answers that have to leave before it gets anything.
    starting: VecDeque<(u64, ReaderId)>,
    /// All publishes up to this number have been answered.
    pub(super) answered_through: u64,
}

impl Answers {
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether an answer may leave at once.
    pub(super) fn may_pass(&self, confirm: Confirm, journal: Progress) -> bool {
        self.held.is_empty() && confirm.is_reached(journal)
    }

    pub(super) fn hold(&mut self, held: Held) {
        self.held.push_back(held);
    }

    /// Takes the next answer that no longer has to wait.
    pub(super) fn pop(&mut self, journal: Progress) -> Option<Held> {
        let held = self.held.pop_front_if(|held| held.confirm.is_reached(journal))?;
        self.before += 1;
        Some(held)
    }

    /// Makes a reader wait until all answers held now have left; `false` if there are none.
    pub(super) fn start_behind(&mut self, reader: ReaderId) -> bool {
        if !self.held.is_empty() {
            self.starting.push_back((self.before + self.held.len() as u64, reader));
        }
        !self.held.is_empty()
    }

    /// Takes the next reader that no longer has to wait.
    pub(super) fn pop_started(&mut self) -> Option<ReaderId> {
        loop {
            let (_, reader) = self.starting.pop_front_if(|(answers, _)| *answers <= self.before)?;
            // A reader that also waits for a later answer does not start yet.
            if self.starting.iter().all(|(_, waiting)| *waiting != reader) {
                return Some(reader);
            }
        }
    }

    /// Whether the last answer only waits for the journal to be written, not synced.
    pub(super) fn wait_for_write(&self, journal: Progress) -> bool {
        self.held.back().is_some_and(|held| held.confirm.is_synced(journal))
    }

    /// Drops all answers, which can no longer be sent.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.starting.clear();
    }
}
