//! The last stalls, and how many there were, for questions that come later.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use imori_core::time::Time;

use super::judge::{Cause, Evidence};
use crate::limits::STALLS_KEPT;
use crate::slots::unpoisoned;

/// The part of the broker that is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LateWork {
    /// A write or a sync of the journal.
    Flush,
    /// A cell.
    Cell(u16),
}

/// The step that a flush has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The write.
    Write,
    /// The sync of what is written.
    Sync,
}

impl Step {
    /// As people call it.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Step::Write => "write",
            Step::Sync => "sync",
        }
    }
}

/// One stall.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stall {
    pub(crate) what: LateWork,
    pub(crate) began: Time,
    /// Up to now, where it is not over.
    pub(crate) lasted: Duration,
    pub(crate) is_over: bool,
    pub(crate) cause: Cause,
    pub(crate) evidence: Evidence,
    /// The step of the flush at the last look.
    pub(crate) step: Option<Step>,
    /// Bytes that waited for the disk.
    pub(crate) queued_bytes: usize,
    /// Records that are written and not synced.
    pub(crate) unsynced: u64,
}

/// Every stall that is over, counted, and the last of all in full.
#[derive(Debug, Default)]
pub(crate) struct Stalls {
    last: Mutex<Last>,
    counts: [AtomicU64; Cause::ALL.len()],
}

#[derive(Debug, Default)]
struct Last {
    /// How many came before the first that is kept.
    dropped: u64,
    stalls: VecDeque<Stall>,
}

impl Stalls {
    /// Notes a stall that goes on; gives the number by which it is told how it goes on.
    pub(crate) fn begin(&self, stall: Stall) -> u64 {
        let mut last = unpoisoned(self.last.lock());
        if last.stalls.len() == STALLS_KEPT {
            last.stalls.pop_front();
            last.dropped += 1;
        }
        last.stalls.push_back(stall);
        last.dropped + last.stalls.len() as u64 - 1
    }

    /// How a stall goes on, or that it is over.
    pub(crate) fn renew(&self, number: u64, stall: Stall) {
        let mut last = unpoisoned(self.last.lock());
        let index = number.checked_sub(last.dropped).and_then(|index| usize::try_from(index).ok());
        if let Some(kept) = index.and_then(|index| last.stalls.get_mut(index)) {
            *kept = stall;
        }
    }

    /// A stall is over and is counted; gives it, unless it is forgotten.
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

    /// The last ones, the oldest first.
    pub(crate) fn last(&self) -> Vec<Stall> {
        unpoisoned(self.last.lock()).stalls.iter().copied().collect()
    }

    /// Why the flush takes long that is under way.
    pub(crate) fn flush_cause(&self) -> Option<Cause> {
        let last = unpoisoned(self.last.lock());
        let flush = last.stalls.iter().rev().find(|stall| stall.what == LateWork::Flush)?;
        (!flush.is_over).then_some(flush.cause)
    }

    /// How many of a cause are over: what is behind one is judged better the longer it lasts.
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
