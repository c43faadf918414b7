//! The dead letters that stay in their queue because the disk has no room for them elsewhere.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::message::DeathReason;
use crate::time::Time;

/// Time after which a queue tries to send its pending dead letters again.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Messages that died, by sequence number: the oldest goes first.
#[derive(Debug)]
pub(crate) struct PendingDeadLetters {
    of: BTreeMap<u64, DeathReason>,
    /// Bytes of memory that the messages keep.
    memory: usize,
    retry: Time,
}

impl PendingDeadLetters {
    /// Creates an empty list; the time to the first retry counts from `now`.
    pub(crate) fn new(now: Time) -> PendingDeadLetters {
        PendingDeadLetters { of: BTreeMap::new(), memory: 0, retry: now.after(RETRY_AFTER) }
    }

    pub(crate) fn add(&mut self, sequence: u64, reason: DeathReason, memory: usize) {
        self.of.insert(sequence, reason);
        self.memory += memory;
    }

    pub(crate) fn first(&self) -> Option<(u64, DeathReason)> {
        self.of.first_key_value().map(|(sequence, reason)| (*sequence, *reason))
    }

    pub(crate) fn remove(&mut self, sequence: u64, memory: usize) {
        if self.of.remove(&sequence).is_some() {
            self.memory = self.memory.saturating_sub(memory);
        }
    }

    pub(crate) fn has(&self, sequence: u64) -> bool {
        self.of.contains_key(&sequence)
    }

    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// When the queue tries again to send them.
    pub(crate) fn retry(&self) -> Time {
        self.retry
    }

    /// Notes an attempt to send them.
    pub(crate) fn tried(&mut self, now: Time) {
        if self.retry <= now {
            self.retry = now.after(RETRY_AFTER);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_came_first_go_first_and_give_their_memory_back() {
        let mut pending = PendingDeadLetters::new(Time(0));
        for (sequence, memory) in [(7, 70), (3, 30), (5, 50)] {
            pending.add(sequence, DeathReason::Rejected, memory);
        }
        // There is no such dead letter.
        pending.remove(4, 40);
        let is_there = |pending: &PendingDeadLetters| [3, 4, 5, 7].map(|sequence| pending.has(sequence));
        assert_eq!((pending.memory(), is_there(&pending)), (150, [true, false, true, true]));
        pending.remove(3, 30);
        assert_eq!(pending.first(), Some((5, DeathReason::Rejected)));
        assert_eq!((pending.memory(), is_there(&pending)), (120, [false, false, true, true]));
    }

    #[test]
    fn a_queue_tries_again_after_a_while_and_not_for_each_command_before() {
        let after = |ms| Time(0).after(Duration::from_millis(ms));
        let mut pending = PendingDeadLetters::new(Time(0));
        for (tried, retry) in [(0, 50), (49, 50), (50, 100), (70, 100), (130, 180)] {
            pending.tried(after(tried));
            assert_eq!(pending.retry(), after(retry), "tried after {tried} ms");
        }
    }
}
