//! How far the journal is, and which cells wait for it to come further.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use imori_core::confirm::{Lsn, Progress};
use tokio::sync::Notify;

use crate::slots::unpoisoned;

/// The journal's progress, and the cells that want to be told of it.
#[derive(Debug)]
pub(crate) struct Waiters {
    written: AtomicU64,
    synced: AtomicU64,
    /// Somebody waits for the journal to have less to write.
    wants_all: AtomicBool,
    cells: Box<[Waiter]>,
    /// A thread of the store waits in `synced_further`.
    thread_waits: AtomicBool,
    waiting: Mutex<()>,
    synced_further: Condvar,
}

#[derive(Debug, Default)]
struct Waiter {
    /// The cell has answers that wait for the device.
    waits: AtomicBool,
    /// The cell has answers that wait for the operating system only.
    waits_for_write: AtomicBool,
    woken: Notify,
}

impl Waiters {
    /// The waiters of a broker with this number of cells, whose journal has all up to `synced`.
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

    /// How far the journal is.
    pub(crate) fn progress(&self) -> Progress {
        let written = Lsn(self.written.load(Ordering::SeqCst));
        Progress { written, synced: Lsn(self.synced.load(Ordering::SeqCst)) }
    }

    /// The operating system has all up to here.
    pub(crate) fn written(&self, through: Lsn) {
        self.written.fetch_max(through.0, Ordering::SeqCst);
        for waiter in &self.cells {
            if waiter.waits_for_write.swap(false, Ordering::SeqCst) {
                waiter.woken.notify_one();
            }
        }
    }

    /// The device has all up to here.
    pub(crate) fn synced(&self, through: Lsn) {
        self.synced.fetch_max(through.0, Ordering::SeqCst);
        let wants_all = self.wants_all.load(Ordering::SeqCst);
        for waiter in &self.cells {
            if waiter.waits.swap(false, Ordering::SeqCst) || wants_all {
                waiter.woken.notify_one();
            }
        }
        if self.thread_waits.swap(false, Ordering::SeqCst) {
            // A thread that looked before this number was there is waiting once the lock is free.
            drop(unpoisoned(self.waiting.lock()));
            self.synced_further.notify_all();
        }
    }

    /// Waits on a thread that has time until the device has all up to here; false where `is_hopeless` is, which is
    /// asked every so often.
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

    /// A cell wants to be told of each sync from now on, and of each write if it asks for that too. The cell
    /// looks at the progress once more after this.
    pub(crate) fn wait(&self, cell: u16, write_too: bool) {
        if let Some(waiter) = self.cells.get(usize::from(cell)) {
            waiter.waits.store(true, Ordering::SeqCst);
            waiter.waits_for_write.fetch_or(write_too, Ordering::SeqCst);
        }
    }

    /// Gives the notification that wakes a cell.
    pub(crate) fn woken(&self, cell: u16) -> Option<&Notify> {
        self.cells.get(usize::from(cell)).map(|waiter| &waiter.woken)
    }

    /// Every cell wants to be told of each progress, or not any more: publishers wait for the disk.
    pub(crate) fn want_all(&self, wanted: bool) {
        self.wants_all.store(wanted, Ordering::SeqCst);
    }

    /// Wakes every cell: something else changed for those who wait.
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
