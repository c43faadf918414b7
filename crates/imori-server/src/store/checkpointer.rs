//! State of the checkpointer: the pages that a checkpoint would free, and the signals that wake or end its thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use imori_core::confirm::Lsn;
use imori_core::entries::GonePage;

use crate::slots::unpoisoned;

/// Pages waiting for the next checkpoint, and the limit of journal files that makes one due.
#[derive(Debug)]
pub struct Checkpointer {
    /// Journal files that may be live.
    pub files_max: usize,
    /// Pages that a checkpoint would free.
    spared: AtomicUsize,
    /// Pages to discard after the next checkpoint.
    gone: Mutex<Vec<GonePage>>,
    /// Messages in segments below this number may have been delivered before an unclean end.
    pub doubtful_below: u32,
    /// The same for messages whose records are below this LSN.
    pub doubtful_records_below: Lsn,
    ends: AtomicBool,
    waiting: Mutex<()>,
    told: Condvar,
}

impl Checkpointer {
    /// Creates the checkpointer with the pages that recovery found unused.
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

    /// Adds to the number of pages that a checkpoint would free.
    pub fn spare(&self, pages: usize) {
        self.spared.fetch_add(pages, Ordering::Relaxed);
    }

    /// Adds pages to discard after the next checkpoint.
    pub fn take_gone(&self, pages: Vec<GonePage>) {
        self.spare(pages.len());
        unpoisoned(self.gone.lock()).extend(pages);
    }

    /// Puts pages back after a checkpoint that was not made. Does not count them as spared: they wait for the next
    /// checkpoint that has another reason, instead of causing a retry at once.
    pub(crate) fn keep_gone(&self, pages: Vec<GonePage>) {
        unpoisoned(self.gone.lock()).extend(pages);
    }

    /// Number of pages that a checkpoint would free.
    pub fn spared(&self) -> usize {
        self.spared.load(Ordering::Relaxed)
    }

    /// Takes the pages to discard after the next checkpoint and resets the count of spared pages.
    pub fn gone(&self) -> Vec<GonePage> {
        self.spared.store(0, Ordering::Relaxed);
        std::mem::take(&mut *unpoisoned(self.gone.lock()))
    }

    /// Tells the thread to make a last checkpoint and end; called once no cell runs.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.told.notify_all();
    }

    /// Whether the thread has been told to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ends.load(Ordering::SeqCst)
    }

    /// Sleeps for `time`, or until the thread is told to end.
    pub(crate) fn wait(&self, time: Duration) {
        let waiting = unpoisoned(self.waiting.lock());
        if !self.is_ending() {
            drop(unpoisoned(self.told.wait_timeout(waiting, time)));
        }
    }
}
