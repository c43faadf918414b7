//! Delayed messages become ready when they are due, or are cancelled before.

use super::leave::Effects;
use super::queue::Queue;
use crate::entries::{Delayed, Entry, Front, Pages, TakenOut};
use crate::features::QueueFeatures;
use crate::policy::Overflow;
use crate::time::Time;

impl Queue {
    pub(crate) fn delay(&mut self, due: Time, entry: Entry) {
        self.features.add(QueueFeatures::DELAYED);
        self.delayed.get_or_insert_default();
        self.with_delayed(|delayed, _| delayed.insert(due, entry));
    }

    /// Cancels the delayed messages with this message id, unless they are due. Returns how many these were; they go
    /// nowhere.
    pub fn cancel(&mut self, name: &[u8], now: Time, effects: &mut Effects) -> usize {
        self.move_due(now, effects);
        let mut cancelled = 0;
        while let Some(taken) = self.with_delayed(|delayed, _| delayed.pop_named(name, now)).flatten() {
            effects.settled.extend(self.record_ref(taken.lsn()));
            self.drop_delayed(taken);
            cancelled += 1;
        }
        cancelled
    }

    /// Ends the restoring of the queue. Messages that fell due while the broker was away are ready now. Where these
    /// are too many, the next arrival makes some go, as it does after a release.
    pub fn all_restored(&mut self, now: Time) {
        self.move_due_in_place(now);
        self.renew_features();
    }

    /// Takes the delayed messages that were due by then.
    pub(crate) fn due_before(&mut self, now: Time) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop_due(now)).collect()
    }

    /// Makes the messages ready that are due by now. Where that is too much for a queue that drops its oldest
    /// messages, these go.
    pub(crate) fn move_due(&mut self, now: Time, effects: &mut Effects) {
        if self.delayed.as_ref().and_then(|delayed| delayed.next_due()).is_none_or(|due| due > now) {
            return;
        }
        // What is over makes room for it.
        self.expire(now, effects);
        self.move_due_in_place(now);
        if self.settings.overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
    }

    /// Makes all messages ready that are due by now, however many these are.
    fn move_due_in_place(&mut self, now: Time) {
        while let Some(mut entry) = self.pop_due(now) {
            // It comes behind all that wait already.
            entry.envelope.sequence = self.next_sequence;
            self.next_sequence += 1;
            entry.position = self.next_position(entry.envelope.priority, entry.envelope.lsn);
            self.gauge.add(Entry::CHARGE);
            self.ready_end = self.next_sequence;
            self.ready.push(entry);
        }
    }

    /// Takes the first delayed message, if it is due by now and in memory.
    fn pop_due(&mut self, now: Time) -> Option<Entry> {
        match self.with_delayed(|delayed, _| delayed.pop_due(now))? {
            Front::Entry(entry) => Some(entry),
            Front::OnDisk | Front::Nothing => None,
        }
    }

    /// Forgets a delayed message.
    pub(crate) fn drop_delayed(&mut self, taken: TakenOut) {
        match taken {
            TakenOut::Entry(entry) => {
                self.gauge.add(Entry::CHARGE);
                self.leave(&entry);
            }
            TakenOut::Stub(stub) => {
                self.pages.settle(stub.page, stub.lsn);
                self.counts.remove(&stub.lsn);
            }
        }
    }

    /// Changes the delayed messages, if there are any, and charges the change of their memory.
    pub(crate) fn with_delayed<R>(
        &mut self,
        change: impl FnOnce(&mut Delayed, &mut Pages) -> R,
    ) -> Option<R> {
        let delayed = self.delayed.as_mut()?;
        let before = delayed.charge();
        let result = change(delayed, &mut self.pages);
        match delayed.charge().checked_sub(before) {
            Some(more) => self.gauge.add(more),
            None => self.gauge.sub(before - delayed.charge()),
        }
        if delayed.is_empty() {
            self.delayed = None;
        }
        Some(result)
    }
}
