//! CPU load of a cell.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::slots::unpoisoned;

/// Shortest interval over which the load is measured, in microseconds.
const STRETCH_MICROS: u64 = 100_000;

/// Measures the share of time in which a cell's thread was not parked.
#[derive(Debug)]
pub(crate) struct Load {
    started: Instant,
    /// Total microseconds parked.
    parked: AtomicU64,
    /// When the thread parked, plus one; zero while awake.
    parked_since: AtomicU64,
    last: Mutex<Sample>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sample {
    at: u64,
    parked: u64,
    percent: u8,
}

impl Load {
    pub(crate) fn new() -> Load {
        Load {
            started: Instant::now(),
            parked: AtomicU64::new(0),
            parked_since: AtomicU64::new(0),
            last: Mutex::new(Sample::default()),
        }
    }

    /// Notes that the thread is about to park.
    pub(crate) fn park(&self) {
        self.parked_since.store(self.micros() + 1, Ordering::Relaxed);
    }

    /// Notes that the thread is awake.
    pub(crate) fn unpark(&self) {
        // `Release` orders this after the pulse's update; otherwise a reader that sees the cell awake could see an
        // old turn.
        let since = self.parked_since.swap(0, Ordering::Release);
        if since > 0 {
            let parked = self.micros().saturating_sub(since - 1);
            self.parked.store(self.parked.load(Ordering::Relaxed) + parked, Ordering::Relaxed);
        }
    }

    /// Whether the thread is parked.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked_since.load(Ordering::Acquire) > 0
    }

    /// Percentage of the last interval in which the thread was awake.
    pub(crate) fn busy_percent(&self) -> u8 {
        let mut last = unpoisoned(self.last.lock());
        let at = self.micros();
        let stretch = at.saturating_sub(last.at);
        if stretch >= STRETCH_MICROS {
            let since = self.parked_since.load(Ordering::Relaxed);
            let parked_now = if since > 0 { at.saturating_sub(since - 1) } else { 0 };
            let parked = self.parked.load(Ordering::Relaxed) + parked_now;
            let awake = stretch.saturating_sub(parked.saturating_sub(last.parked));
            let percent = u8::try_from(awake * 100 / stretch).unwrap_or(100);
            *last = Sample { at, parked, percent };
        }
        last.percent
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}
