//! The observations of a canary: its longest waits, and the intervals in which it was late.
//!
//! A canary is a thread that repeatedly requests a small service from the machine. It keeps a
//! maximum for each 100 ms, and the intervals in which it was not served.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Nanoseconds covered by one maximum.
pub(crate) const BIN_NANOS: u64 = 100_000_000;

/// Nanoseconds of lateness from which an interval is noted; a shorter one is no evidence for a stall.
const LATE_NANOS: u64 = 10_000_000;

/// The most maxima kept, enough for a week; later waits are not recorded.
const BINS_MAX: usize = 6_048_000;

/// The most intervals kept; later ones only count towards the maxima.
const STRETCHES_MAX: usize = 50_000;

/// The service that a canary requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CanaryKind {
    /// A wake-up on any CPU that this program may use.
    Client,
    /// A wake-up on this CPU, which is one of the broker's.
    Cpu(usize),
    /// A small write and its sync.
    Disk,
    /// An echo from the broker's host.
    Network,
}

/// An interval in which a canary waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Late {
    /// When it should have been served.
    pub(crate) begin: u64,
    /// When it was served.
    pub(crate) end: u64,
    /// When it was last known to be served, if it made no request since.
    pub(crate) blind_since: u64,
    /// Nanoseconds of the interval in which it was runnable without a CPU, if the kernel reports it.
    pub(crate) without_cpu: Option<u64>,
}

/// The record of one canary; its thread writes, others read.
#[derive(Debug)]
pub(crate) struct Canary {
    pub(crate) kind: CanaryKind,
    record: Mutex<Record>,
}

/// The waits of a canary so far.
#[derive(Debug, Default, Clone)]
pub(crate) struct Record {
    /// Late waits, ordered by their end.
    pub(crate) late: Vec<Late>,
    /// The longest wait of each 100 ms in microseconds, from the start of the clock.
    maxima: Vec<u32>,
    /// Time of the request that is not served yet, if there is one.
    pub(crate) asked: Option<u64>,
    /// The reason why it cannot observe anything.
    pub(crate) failure: Option<String>,
}

impl Late {
    /// A wait between two moments.
    pub(crate) fn new(begin: u64, end: u64) -> Late {
        Late { begin, end, blind_since: begin, without_cpu: None }
    }
}

impl Canary {
    /// Creates a canary with an empty record.
    pub(crate) fn new(kind: CanaryKind) -> Canary {
        Canary { kind, record: Mutex::new(Record::default()) }
    }

    /// Records that a request is made now.
    pub(crate) fn asks(&self, now: u64) {
        self.record().asked = Some(now);
    }

    /// Records a wait; `is_long` tells whether it counts as late.
    pub(crate) fn waited(&self, wait: Late, is_long: bool) {
        let mut record = self.record();
        record.asked = None;
        record.raise(wait.begin, wait.end);
        if is_long && wait.end.saturating_sub(wait.begin) >= LATE_NANOS && record.late.len() < STRETCHES_MAX {
            record.late.push(wait);
        }
    }

    /// Records why the canary cannot observe anything from now on.
    pub(crate) fn fails(&self, why: String) {
        let mut record = self.record();
        record.asked = None;
        record.failure = Some(why);
    }

    /// Records that the canary works again.
    pub(crate) fn recovers(&self) {
        self.record().failure = None;
    }

    /// Locks the record; a panic of the canary's thread loses at most the last wait.
    pub(crate) fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// The longest wait within an interval in microseconds; `None` if the canary was not active.
    pub(crate) fn worst_us(&self, begin: u64, end: u64) -> Option<f64> {
        let from = usize::try_from(begin / BIN_NANOS).ok()?;
        let to = usize::try_from(end.div_ceil(BIN_NANOS)).ok()?.min(self.maxima.len());
        self.maxima.get(from..to)?.iter().max().map(|worst| f64::from(*worst))
    }

    /// The waits within an interval in microseconds, for a canary with about one request per bin.
    pub(crate) fn waits_us(&self, begin: u64, end: u64) -> impl Iterator<Item = u32> + '_ {
        let from = usize::try_from(begin / BIN_NANOS).unwrap_or(usize::MAX);
        let to = usize::try_from(end / BIN_NANOS).unwrap_or(usize::MAX).min(self.maxima.len());
        self.maxima.get(from..to).unwrap_or_default().iter().copied().filter(|waited| *waited > 0)
    }

    /// Raises the maxima of all bins that a wait touches, each to the length of the wait at the end
    /// of that bin.
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
