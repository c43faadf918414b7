//! Answers that wait for the journal, in their order, and the readers that wait for them.

use std::collections::VecDeque;

use crate::confirm::{Confirm, Level, Progress};
use crate::id::ReaderId;

/// An answer that waits.
pub(super) struct Held {
    confirm: Confirm,
    /// What it promises, if it is a confirm.
    pub(super) promised: Option<Level>,
    pub(super) bytes: Vec<u8>,
}

/// The answers of a connection that wait.
#[derive(Default)]
pub(super) struct Answers {
    held: VecDeque<Held>,
    /// How many there were before the first of these.
    before: u64,
    /// Readers that get nothing before so many have left, in this order.
    starting: VecDeque<(u64, ReaderId)>,
    /// How far the journal has come, as far as they were told.
    journal: Progress,
}

impl Answers {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Tells whether an answer has to wait for nothing.
    pub(super) fn may_pass(&self, confirm: Confirm) -> bool {
        self.held.is_empty() && confirm.is_reached(self.journal)
    }

    pub(super) fn hold(&mut self, confirm: Confirm, promised: Option<Level>, bytes: Vec<u8>) {
        self.held.push_back(Held { confirm, promised, bytes });
    }

    /// Notes how far the journal has come.
    pub(super) fn note(&mut self, journal: Progress) {
        self.journal = self.journal.max(journal);
    }

    /// Takes the next that need not wait any more.
    pub(super) fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front_if(|held| held.confirm.is_reached(self.journal))?;
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
        let started = self.starting.pop_front_if(|(answers, _)| *answers <= self.before)?;
        Some(started.1)
    }

    /// Tells whether the last of them waits for no more than that the journal is written.
    pub(super) fn wait_for_write(&self) -> bool {
        self.held.back().is_some_and(|held| held.confirm.synced <= self.journal.synced)
    }

    /// Drops them: nobody hears them any more.
    pub(super) fn clear(&mut self) {
        self.held.clear();
        self.starting.clear();
    }
}
