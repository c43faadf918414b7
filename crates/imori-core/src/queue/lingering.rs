//! What died in a queue and is still there.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::message::DeathReason;
use crate::time::Time;

/// How long a queue waits before it tries again to let go what lingers.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// Messages that died, by the sequence numbers of their deliveries: those that came first go first.
#[derive(Debug)]
pub(super) struct Lingering {
    of: BTreeMap<u64, DeathReason>,
    /// Bytes of memory that they keep.
    memory: usize,
    retry: Time,
}

impl Lingering {
    /// None yet, from now on.
    pub(super) fn new(now: Time) -> Lingering {
        Lingering { of: BTreeMap::new(), memory: 0, retry: now.after(RETRY_AFTER) }
    }

    pub(super) fn add(&mut self, sequence: u64, reason: DeathReason, memory: usize) {
        self.of.insert(sequence, reason);
        self.memory += memory;
    }

    pub(super) fn first(&self) -> Option<(u64, DeathReason)> {
        self.of.first_key_value().map(|(sequence, reason)| (*sequence, *reason))
    }

    pub(super) fn remove(&mut self, sequence: u64, memory: usize) {
        if self.of.remove(&sequence).is_some() {
            self.memory = self.memory.saturating_sub(memory);
        }
    }

    pub(super) fn has(&self, sequence: u64) -> bool {
        self.of.contains_key(&sequence)
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }

    /// When the queue tries again.
    pub(super) fn retry(&self) -> Time {
        self.retry
    }

    /// Notes that it has tried.
    pub(super) fn tried(&mut self, now: Time) {
        if self.retry <= now {
            self.retry = now.after(RETRY_AFTER);
        }
    }
}
