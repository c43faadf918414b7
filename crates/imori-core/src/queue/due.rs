//! Delayed messages, which become ready when they are due or are cancelled before.

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

    /// Cancels the delayed messages with this message id that are not due yet; returns how many. They are not
    /// dead-lettered.
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

    /// Ends the restoration of the queue. Messages that fell due while the broker was down become ready. If
    /// these exceed the length limit, the next arrival drops the surplus, as it does after a release.
    pub fn all_restored(&mut self, now: Time) {
        self.move_due_in_place(now);
        self.renew_features();
    }

    /// Takes the delayed messages that were due by `now`.
    pub(crate) fn due_before(&mut self, now: Time) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop_due(now)).collect()
    }

    /// Makes ready the messages that are due by `now`. If these exceed the length limit of a queue that drops
    /// its oldest messages, the surplus is dropped.
    pub(crate) fn move_due(&mut self, now: Time, effects: &mut Effects) {
        if self.delayed.as_ref().and_then(|delayed| delayed.next_due()).is_none_or(|due| due > now) {
            return;
        }
        // Expired messages make room first.
        self.expire(now, effects);
        self.move_due_in_place(now);
        if self.settings.overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
    }

    /// Makes ready all messages that are due by `now`, whatever the length limit.
    fn move_due_in_place(&mut self, now: Time) {
        while let Some(mut entry) = self.pop_due(now) {
            // It goes behind all messages that are ready already.
            entry.envelope.sequence = self.next_sequence;
            self.next_sequence += 1;
            entry.position = self.next_position(entry.envelope.priority, entry.envelope.lsn);
            self.gauge.add(Entry::CHARGE);
            self.ready_end = self.next_sequence;
            self.ready.push(entry);
        }
    }

    /// Takes the first delayed message, if it is due by `now` and in memory.
    fn pop_due(&mut self, now: Time) -> Option<Entry> {
        match self.with_delayed(|delayed, _| delayed.pop_due(now))? {
            Front::Entry(entry) => Some(entry),
            Front::OnDisk | Front::Nothing => None,
        }
    }

    /// Releases the memory, or the place on disk, of a delayed message that was taken out.
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

    /// Changes the delayed messages, if there are any, and charges the difference in memory.
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
