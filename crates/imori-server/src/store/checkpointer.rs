//! The state of the checkpointer: the pages and files that could go, and the requests to look at them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use imori_core::confirm::Lsn;
use imori_core::entries::GonePage;

use crate::slots::unpoisoned;

/// The pages that could go and the limit of journal files, by which checkpoints are made.
#[derive(Debug)]
pub struct Checkpointer {
    /// Journal files that may be live.
    pub files_max: usize,
    /// Pages that a checkpoint would free.
    spared: AtomicUsize,
    /// Pages that go after the next checkpoint.
    gone: Mutex<Vec<GonePage>>,
    /// Nobody knows whether messages in segments below this one were given out before.
    pub doubtful_below: u32,
    /// Nor whether messages with records below this one were.
    pub doubtful_records_below: Lsn,
    ends: AtomicBool,
    waiting: Mutex<()>,
    told: Condvar,
}

impl Checkpointer {
    /// A checkpointer to whom nothing was said yet but what the start found.
    pub fn new(
        files_max: usize,
        (doubtful_below, doubtful_records_below): (u32, Lsn),
        gone: Vec<GonePage>,
    ) -> Checkpointer {
        Checkpointer {
            files_max,
            spared: AtomicUsize::new(gone.len()),
            gone: Mutex::new(gone),
            doubtful_below,
            doubtful_records_below,
            ends: AtomicBool::new(false),
            waiting: Mutex::new(()),
            told: Condvar::new(),
        }
    }

    /// So many pages more are needed by nobody.
    pub fn spare(&self, pages: usize) {
        self.spared.fetch_add(pages, Ordering::Relaxed);
    }

    /// Takes pages that go after the next checkpoint.
    pub fn take_gone(&self, pages: Vec<GonePage>) {
        self.spare(pages.len());
        unpoisoned(self.gone.lock()).extend(pages);
    }

    /// Takes pages back that a checkpoint would have freed which was not taken. They are no reason to try again at
    /// once: they go with the next that there is a reason for.
    pub(crate) fn keep_gone(&self, pages: Vec<GonePage>) {
        unpoisoned(self.gone.lock()).extend(pages);
    }

    /// How many pages a checkpoint would free.
    pub fn spared(&self) -> usize {
        self.spared.load(Ordering::Relaxed)
    }

    /// Gives what the next checkpoint frees, but for what the queues say.
    pub fn gone(&self) -> Vec<GonePage> {
        self.spared.store(0, Ordering::Relaxed);
        std::mem::take(&mut *unpoisoned(self.gone.lock()))
    }

    /// Ends the thread with a last checkpoint; no cell runs any more.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.told.notify_all();
    }

    /// Tells whether it is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// Waits for so long, or until it is to end.
    pub(crate) fn wait(&self, time: Duration) {
        let waiting = unpoisoned(self.waiting.lock());
        if !self.is_ending() {
            drop(unpoisoned(self.told.wait_timeout(waiting, time)));
        }
    }
}
