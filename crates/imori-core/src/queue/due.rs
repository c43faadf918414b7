//! Messages that wait for their time: they come to the others when they are due, or are taken back before.

use super::leave::Effects;
use super::queue::Queue;
use super::settings::Overflow;
use crate::entries::{Delayed, Entry, Front, Pages, TakenOut};
use crate::time::Time;

impl Queue {
    pub(crate) fn delay(&mut self, due: Time, entry: Entry) {
        self.delayed.get_or_insert_default();
        self.with_delayed(|delayed, _| delayed.insert(due, entry));
    }

    /// Takes back the messages that this is the publisher's own name of, as long as they are not due; tells how
    /// many these were. They go nowhere.
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
    }

    /// Takes those that were due when something came.
    pub(crate) fn due_before(&mut self, now: Time) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop_due(now)).collect()
    }

    /// Lets wait with the others what is due by now; what then is too much goes, if that is how the queue is.
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

    /// Lets wait with the others what is due by now, however many these are.
    fn move_due_in_place(&mut self, now: Time) {
        while let Some(mut entry) = self.pop_due(now) {
            // It comes behind all that wait already.
            entry.envelope.sequence = self.next_sequence;
            self.next_sequence += 1;
            entry.position = self.next_position(entry.envelope.priority, entry.envelope.lsn);
            self.gauge.add(Entry::CHARGE);
            self.ready.push(entry);
        }
    }

    /// Takes the first of those that wait for their time, if it is due by now and in memory.
    fn pop_due(&mut self, now: Time) -> Option<Entry> {
        match self.with_delayed(|delayed, _| delayed.pop_due(now))? {
            Front::Entry(entry) => Some(entry),
            Front::OnDisk | Front::Nothing => None,
        }
    }

    /// Forgets one that waited for its time.
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

    /// Changes those that wait for their time, if there are any, and charges what that makes of their memory.
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
