//! The waits of a canary: the longest, and the stretches in which it was late.
//!
//! A canary is a thread that asks the machine for a little something again and again. It keeps
//! maxima of a tenth of a second each and the stretches in which it got nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nanoseconds for which one maximum stands.
pub(crate) const BIN_NANOS: u64 = 100_000_000;

/// Nanoseconds from which being late is noted as a stretch; below it evidence for a stall is none.
const LATE_NANOS: u64 = 10_000_000;

/// Maxima that are kept, which is a week; what comes later has none.
const BINS_MAX: usize = 6_048_000;

/// Stretches that are kept; what comes later is only counted.
const STRETCHES_MAX: usize = 50_000;

/// The need that a canary tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanaryKind {
    /// To be woken, wherever this program may run.
    Client,
    /// To be woken on this CPU, which is one of the broker's.
    Cpu(usize),
    /// A small write and its sync.
    Disk,
    /// An echo from the broker's host.
    Network,
}

/// A stretch in which a canary waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// When it should have had what it asked for.
    pub(crate) begin: u64,
    /// When it had it.
    pub(crate) end: u64,
    /// When it was last known to have been served, if it had not asked since.
    pub(crate) blind_since: u64,
    /// Nanoseconds of these in which it could run and had no CPU, if the kernel tells.
    pub(crate) without_cpu: Option<u64>,
}

/// One canary's record; its thread writes, others look.
#[derive(Debug)]
pub(crate) struct Canary {
    pub(crate) kind: CanaryKind,
    record: Mutex<Record>,
}

/// The waits of a canary until now.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record {
    /// In order of their end.
    pub(crate) late: Vec<Late>,
    /// Worst lateness in microseconds of each tenth of a second, from the clock's start.
    maxima: Vec<u32>,
    /// Since when it has been waiting for an answer, if it is.
    pub(crate) asked: Option<u64>,
    /// Why it sees nothing.
    pub(crate) failure: Option<String>,
}

impl Late {
    /// A wait from one moment to another.
    pub(crate) fn new(begin: u64, end: u64) -> Late {
        Late { begin, end, blind_since: begin, without_cpu: None }
    }
}

impl Canary {
    /// One that has seen nothing yet.
    pub(crate) fn new(kind: CanaryKind) -> Canary {
        Canary { kind, record: Mutex::new(Record::default()) }
    }

    /// Notes that the thread asks now.
    pub(crate) fn asks(&self, now: u64) {
        self.record().asked = Some(now);
    }

    /// Notes that it had to wait from one moment to another, of which so much is too long.
    pub(crate) fn waited(&self, wait: Late, is_long: bool) {
        let mut record = self.record();
        record.asked = None;
        record.raise(wait.begin, wait.end);
        if is_long && wait.end.saturating_sub(wait.begin) >= LATE_NANOS && record.late.len() < STRETCHES_MAX {
            record.late.push(wait);
        }
    }

    /// Notes why it sees nothing from now on.
    pub(crate) fn fails(&self, why: String) {
        let mut record = self.record();
        record.asked = None;
        record.failure = Some(why);
    }

    /// Notes that it sees again.
    pub(crate) fn recovers(&self) {
        self.record().failure = None;
    }

    /// The waits that it saw; a thread that panicked has left all but the last.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Worst lateness within these nanoseconds in microseconds, if the canary was there.
    pub(crate) fn worst_us(&self, begin: u64, end: u64) -> Option<f64> {
        let from = usize::try_from(begin / BIN_NANOS).ok()?;
        let to = usize::try_from(end.div_ceil(BIN_NANOS)).ok()?.min(self.maxima.len());
        self.maxima.get(from..to)?.iter().max().map(|worst| f64::from(*worst))
    }

    /// The waits within these nanoseconds in microseconds, of a canary that asks about once a bin.
    pub(crate) fn waits_us(&self, begin: u64, end: u64) -> impl Iterator<Item = u32> + '_ {
        let from = usize::try_from(begin / BIN_NANOS).unwrap_or(usize::MAX);
        let to = usize::try_from(end / BIN_NANOS).unwrap_or(usize::MAX).min(self.maxima.len());
        self.maxima.get(from..to).unwrap_or_default().iter().copied().filter(|waited| *waited > 0)
    }

    /// Sets the maxima of all bins that a wait reaches into, each to what the wait had come to by its end.
    fn raise(&mut self, begin: u64, end: u64) {
        let (first, last) = ((begin / BIN_NANOS) as usize, (end / BIN_NANOS) as usize);
        if last >= BINS_MAX {
            return;
        }
        if self.maxima.len() <= last {
            self.maxima.resize(last + 1, 0);
        }
        for (bin, maximum) in self.maxima.iter_mut().enumerate().take(last + 1).skip(first) {
            let until = end.min((bin as u64 + 1) * BIN_NANOS);
            let waited = u32::try_from(until.saturating_sub(begin) / 1_000).unwrap_or(u32::MAX);
            *maximum = waited.max(*maximum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn late(begin: u64, end: u64) -> Late {
        Late::new(begin * MS, end * MS)
    }

    #[test]
    fn a_wait_shows_in_each_second_it_reaches_into() {
        let canary = Canary::new(CanaryKind::Client);
        canary.waited(late(50, 51), false);
        canary.waited(late(900, 2_300), true);
        let record = canary.record();
        for (begin, end, expected) in [
            (0, 100, Some(1_000.0)),
            (100, 900, Some(0.0)),
            (0, 1_000, Some(100_000.0)),
            (1_000, 2_000, Some(1_100_000.0)),
            (2_000, 3_000, Some(1_400_000.0)),
            (3_000, 4_000, None),
        ] {
            assert_eq!(record.worst_us(begin * MS, end * MS), expected, "{begin} to {end}");
        }
        assert_eq!(record.late, [late(900, 2_300)]);
        for (begin, end, expected) in
            [(0, 100, &[1_000][..]), (100, 900, &[]), (900, 1_100, &[100_000, 200_000])]
        {
            let waits: Vec<u32> = record.waits_us(begin * MS, end * MS).collect();
            assert_eq!(waits, expected, "{begin} to {end}");
        }
    }
}
