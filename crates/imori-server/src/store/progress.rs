//! Progress of the journal, and the cells that wait for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use imori_core::confirm::{Lsn, Progress};
use tokio::sync::Notify;

use crate::slots::unpoisoned;

/// The journal's progress, and the cells to notify of it.
#[derive(Debug)]
pub(crate) struct Waiters {
    written: AtomicU64,
    synced: AtomicU64,
    /// Every cell is notified, because publishers wait for the journal's backlog to shrink.
    wants_all: AtomicBool,
    cells: Box<[Waiter]>,
    /// A thread of the store waits for `synced_further`.
    thread_waits: AtomicBool,
    waiting: Mutex<()>,
    synced_further: Condvar,
}

#[derive(Debug, Default)]
struct Waiter {
    /// The cell has answers that wait for a sync to the device.
    waits: AtomicBool,
    /// The cell has answers that only wait for the write to the operating system.
    waits_for_write: AtomicBool,
    woken: Notify,
}

impl Waiters {
    /// Waiters for `cells` cells; the journal is durable through `synced`.
    pub(crate) fn new(cells: usize, synced: Lsn) -> Waiters {
        Waiters {
            written: AtomicU64::new(synced.0),
            synced: AtomicU64::new(synced.0),
            wants_all: AtomicBool::new(false),
            cells: (0..cells).map(|_| Waiter::default()).collect(),
            thread_waits: AtomicBool::new(false),
            waiting: Mutex::new(()),
            synced_further: Condvar::new(),
        }
    }

    /// The LSNs that are written and synced.
    pub(crate) fn progress(&self) -> Progress {
        let written = Lsn(self.written.load(Ordering::SeqCst));
        Progress { written, synced: Lsn(self.synced.load(Ordering::SeqCst)) }
    }

    /// Notes that the operating system has all records through this LSN, and wakes the cells that wait for that.
    pub(crate) fn written(&self, through: Lsn) {
        self.written.fetch_max(through.0, Ordering::SeqCst);
        for waiter in &self.cells {
            if waiter.waits_for_write.swap(false, Ordering::SeqCst) {
                waiter.woken.notify_one();
            }
        }
    }

    /// Notes that the device has all records through this LSN, and wakes everything that waits for it.
    pub(crate) fn synced(&self, through: Lsn) {
        self.synced.fetch_max(through.0, Ordering::SeqCst);
        let wants_all = self.wants_all.load(Ordering::SeqCst);
        for waiter in &self.cells {
            if waiter.waits.swap(false, Ordering::SeqCst) || wants_all {
                waiter.woken.notify_one();
            }
        }
        if self.thread_waits.swap(false, Ordering::SeqCst) {
            // A thread that checked before the update holds the lock until it waits; taking the lock ensures that it
            // is notified.
            drop(unpoisoned(self.waiting.lock()));
            self.synced_further.notify_all();
        }
    }

    /// Blocks a background thread until the device has all records through `lsn`. Returns false once `is_hopeless`
    /// does, which is checked every `look_every`.
    pub(crate) fn await_synced(
        &self,
        lsn: Lsn,
        look_every: Duration,
        is_hopeless: impl Fn() -> bool,
    ) -> bool {
        let mut waiting = unpoisoned(self.waiting.lock());
        loop {
            self.thread_waits.store(true, Ordering::SeqCst);
            if self.progress().synced >= lsn {
                return true;
            }
            if is_hopeless() {
                return false;
            }
            waiting = unpoisoned(self.synced_further.wait_timeout(waiting, look_every)).0;
        }
    }

    /// Asks to wake a cell at the next sync, and with `write_too` at the next write too. The cell has to check the
    /// progress once more after this call.
    pub(crate) fn wait(&self, cell: u16, write_too: bool) {
        if let Some(waiter) = self.cells.get(usize::from(cell)) {
            waiter.waits.store(true, Ordering::SeqCst);
            waiter.waits_for_write.fetch_or(write_too, Ordering::SeqCst);
        }
    }

    /// The notification that wakes a cell.
    pub(crate) fn woken(&self, cell: u16) -> Option<&Notify> {
        self.cells.get(usize::from(cell)).map(|waiter| &waiter.woken)
    }

    /// Sets whether every cell is woken at each progress, which is so while publishers wait for the disk.
    pub(crate) fn want_all(&self, wanted: bool) {
        self.wants_all.store(wanted, Ordering::SeqCst);
    }

    /// Wakes every cell, because something besides the progress changed.
    pub(crate) fn wake_all(&self) {
        self.cells.iter().for_each(|waiter| waiter.woken.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK_EVERY: Duration = Duration::from_millis(5);

    #[test]
    fn a_thread_is_told_that_its_record_is_synced() {
        let waiters = Waiters::new(1, Lsn(3));
        assert!(waiters.await_synced(Lsn(3), LOOK_EVERY, || true), "it is there");
        assert!(!waiters.await_synced(Lsn(4), LOOK_EVERY, || true), "it never will be");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| waiters.await_synced(Lsn(6), Duration::MAX, || false));
            (4..=6).for_each(|lsn| waiters.synced(Lsn(lsn)));
            assert!(waits.join().expect("it does not panic"));
        });
    }
}
