//! State shared by an internal client and its task, for everything that no frame carries.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::planted::Bug;

/// Bytes of frames that a connection may park. They count towards the memory alarm, and those of
/// all clients together stay well below its mark.
pub(crate) const PARKED_BYTES_MAX: usize = 1_500;

/// The shared state of one internal client.
#[derive(Debug)]
pub(crate) struct Board {
    pub(crate) bug: Option<Bug>,
    names: Mutex<BTreeMap<u64, String>>,
    counts: Mutex<BTreeMap<u64, usize>>,
    fault: Mutex<Option<String>>,
    /// Whether a queue is being purged; a planted bug checks it.
    is_purging: AtomicBool,
}

impl Board {
    pub(crate) fn new(bug: Option<Bug>) -> Board {
        Board {
            bug,
            names: Mutex::default(),
            counts: Mutex::default(),
            fault: Mutex::default(),
            is_purging: AtomicBool::new(false),
        }
    }

    /// Sets the client's name for a subscription.
    pub(crate) fn name(&self, subscription: u64, name: &str) {
        lock(&self.names).insert(subscription, String::from(name));
    }

    /// The name of a subscription, or its number if it has none.
    pub(crate) fn name_of(&self, subscription: u64) -> String {
        lock(&self.names).get(&subscription).cloned().unwrap_or_else(|| subscription.to_string())
    }

    /// Sets the count that belongs to a confirm.
    pub(crate) fn count(&self, confirm: u64, count: usize) {
        lock(&self.counts).insert(confirm, count);
    }

    pub(crate) fn take_count(&self, confirm: u64) -> Option<usize> {
        lock(&self.counts).remove(&confirm)
    }

    /// Notes that the broker refused a command that it must not refuse.
    pub(crate) fn note_fault(&self, text: String) {
        *lock(&self.fault) = Some(text);
    }

    pub(crate) fn take_fault(&self) -> Option<String> {
        lock(&self.fault).take()
    }

    pub(crate) fn set_purging(&self, is_purging: bool) {
        self.is_purging.store(is_purging, Ordering::Relaxed);
    }

    pub(crate) fn is_purging(&self) -> bool {
        self.is_purging.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
