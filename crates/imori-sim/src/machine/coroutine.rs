//! A broker thread as a coroutine: it yields at every lock, and wherever others may run first.

use std::cell::Cell;

use corosensei::Yielder;

use super::lock::Lock;
use super::shared::Shared;
use super::waits::Status;
use crate::property::Property;

/// The context of a running broker thread.
pub(crate) struct CoroutineContext<'a> {
    pub(crate) id: usize,
    pub(crate) shared: &'a Shared,
    status: &'a Cell<Status>,
    yielder: &'a Yielder<(), ()>,
}

/// A held lock; dropping it releases the lock.
pub(crate) struct Held<'a> {
    shared: &'a Shared,
    lock: Lock,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.shared.locks.give_back(self.lock);
    }
}

impl<'a> CoroutineContext<'a> {
    pub(crate) fn new(id: usize, shared: &'a Shared, yielder: &'a Yielder<(), ()>) -> CoroutineContext<'a> {
        CoroutineContext { id, shared, status: shared.status(id), yielder }
    }

    /// Yields to the scheduler with this status.
    pub(crate) fn stop(&self, status: Status) {
        self.status.set(status);
        self.yielder.suspend(());
    }

    /// Yields at random, so that others may run first.
    pub(crate) fn pause(&self) {
        if !self.shared.random.chance(self.shared.haste, 8) {
            self.stop(Status::Ready);
        }
    }

    pub(crate) fn lock(&self, lock: Lock) -> Held<'a> {
        self.lock_one_of(lock, false)
    }

    pub(crate) fn lock_one_of(&self, lock: Lock, is_one_of_many: bool) -> Held<'a> {
        let shared = self.shared;
        if let Some(held) = shared.locks.misorder(self.id, lock, is_one_of_many) {
            shared.violate(Property::LockOrder, || {
                format!("thread {} holds {held:?} and wants {lock:?}", self.id)
            });
            loop {
                self.stop(Status::Failed);
            }
        }
        self.pause();
        while shared.locks.holder(lock).is_some() {
            self.stop(Status::Waiting(lock));
        }
        shared.locks.take(self.id, lock);
        let (kind, number) = match lock {
            Lock::Topology => (0, 0),
            Lock::Queue(slot) => (1, slot),
            Lock::Outbound(cell, slot) => (2 + u64::from(cell), slot),
        };
        shared.trace.note(&[self.id as u64, kind, u64::from(number)], || {
            format!("thread {} locks {lock:?}", self.id)
        });
        Held { shared, lock }
    }
}
