//! Recent stalls, and how many there were of each cause.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imori_core::time::Time;

use super::judge::{Cause, Evidence};
use crate::limits::STALLS_KEPT;
use crate::slots::unpoisoned;

/// The part of the broker that is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LateWork {
    /// A write or sync of the journal.
    Flush,
    /// A cell.
    Cell(u16),
}

impl LateWork {
    /// The name of its kind in APIs.
    pub fn label(self) -> &'static str {
        match self {
            LateWork::Flush => "flush",
            LateWork::Cell(_) => "cell",
        }
    }

    /// The number of the cell.
    pub fn cell(self) -> Option<u16> {
        match self {
            LateWork::Flush => None,
            LateWork::Cell(id) => Some(id),
        }
    }
}

/// The current step of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The write.
    Write,
    /// The sync of what was written.
    Sync,
}

impl Step {
    /// The name shown to people.
    pub fn text(self) -> &'static str {
        match self {
            Step::Write => "write",
            Step::Sync => "sync",
        }
    }
}

/// One stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// The part that is late.
    pub what: LateWork,
    /// When it began.
    pub began: Time,
    /// The duration so far, until the stall is over.
    pub lasted: Duration,
    /// It is over.
    pub is_over: bool,
    /// Its likely cause.
    pub cause: Cause,
    /// The samples that the cause is derived from.
    pub evidence: Evidence,
    /// The step of the flush at the last sample.
    pub step: Option<Step>,
    /// Bytes waiting for the disk.
    pub queued_bytes: usize,
    /// Records written but not synced.
    pub unsynced: u64,
}

/// Counts finished stalls, and keeps the latest ones in full.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    last: Mutex<Last>,
    counts: [AtomicU64; Cause::ALL.len()],
}

#[derive(Debug, Default)]
struct Last {
    /// Number of stalls dropped before the first one kept.
    dropped: u64,
    stalls: VecDeque<Stall>,
}

impl Stalls {
    /// Adds a stall that is not over; returns the number to update it by.
    pub(crate) fn begin(&self, stall: Stall) -> u64 {
        let mut last = unpoisoned(self.last.lock());
        if last.stalls.len() == STALLS_KEPT {
            last.stalls.pop_front();
            last.dropped += 1;
        }
        last.stalls.push_back(stall);
        last.dropped + last.stalls.len() as u64 - 1
    }

    /// Updates a stall.
    pub(crate) fn renew(&self, number: u64, stall: Stall) {
        let mut last = unpoisoned(self.last.lock());
        let index = number.checked_sub(last.dropped).and_then(|index| usize::try_from(index).ok());
        if let Some(kept) = index.and_then(|index| last.stalls.get_mut(index)) {
            *kept = stall;
        }
    }

    /// Ends and counts a stall; returns it if it is still kept.
    pub(crate) fn end(&self, number: u64, now: Time) -> Option<Stall> {
        let ended = self.end_kept(number, now);
        let cause = ended.map_or(Cause::Unknown, |stall| stall.cause);
        if let Some(count) = self.counts.get(cause as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        ended
    }

    fn end_kept(&self, number: u64, now: Time) -> Option<Stall> {
        let mut last = unpoisoned(self.last.lock());
        let index = usize::try_from(number.checked_sub(last.dropped)?).ok()?;
        let stall = last.stalls.get_mut(index)?;
        stall.is_over = true;
        stall.lasted = now.since(stall.began);
        Some(*stall)
    }

    /// The latest stalls, oldest first.
    pub(crate) fn last(&self) -> Vec<Stall> {
        unpoisoned(self.last.lock()).stalls.iter().copied().collect()
    }

    /// The cause of the flush that is late now, if one is.
    pub(crate) fn flush_cause(&self) -> Option<Cause> {
        let last = unpoisoned(self.last.lock());
        let flush = last.stalls.iter().rev().find(|stall| stall.what == LateWork::Flush)?;
        (!flush.is_over).then_some(flush.cause)
    }

    /// Number of finished stalls with this cause. Running ones are excluded, because their cause may still change.
    pub(crate) fn count(&self, cause: Cause) -> u64 {
        self.counts.get(cause as usize).map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(what: LateWork, cause: Cause, millis: u64) -> Stall {
        Stall {
            what,
            began: Time(1),
            lasted: Duration::from_millis(millis),
            is_over: false,
            cause,
            evidence: Evidence::default(),
            step: Some(Step::Sync),
            queued_bytes: 0,
            unsynced: 0,
        }
    }

    #[test]
    fn the_last_are_kept_and_all_are_counted() {
        let stalls = Stalls::default();
        let numbers: Vec<u64> = (0..STALLS_KEPT as u64 + 3)
            .map(|millis| stalls.begin(stall(LateWork::Flush, Cause::Device, millis)))
            .collect();
        assert_eq!(stalls.count(Cause::Device), 0, "none is over");
        let last = stalls.last();
        assert_eq!((last.len(), last[0].lasted), (STALLS_KEPT, Duration::from_millis(3)));
        stalls.renew(numbers[0], stall(LateWork::Flush, Cause::Cpu, 999));
        assert_eq!(stalls.last(), last, "the first is forgotten");
        stalls.renew(numbers[3], stall(LateWork::Flush, Cause::Cpu, 999));
        assert_eq!(stalls.last()[0].lasted, Duration::from_millis(999));
        for number in &numbers {
            let _ = stalls.end(*number, Time(2));
        }
        let counts = [Cause::Device, Cause::Cpu, Cause::Unknown].map(|cause| stalls.count(cause));
        assert_eq!(counts, [STALLS_KEPT as u64 - 1, 1, 3], "those that are forgotten are counted too");
    }

    #[test]
    fn the_cause_of_a_flush_is_told_while_it_lasts() {
        let stalls = Stalls::default();
        assert_eq!(stalls.flush_cause(), None);
        let number = stalls.begin(stall(LateWork::Flush, Cause::Frozen, 1));
        stalls.begin(stall(LateWork::Cell(0), Cause::Cpu, 1));
        assert_eq!(stalls.flush_cause(), Some(Cause::Frozen));
        let ended = stalls.end(number, Time(5_001)).expect("it is kept");
        assert_eq!((ended.lasted, ended.is_over), (Duration::from_millis(5), true));
        assert_eq!(stalls.flush_cause(), None);
    }
}
