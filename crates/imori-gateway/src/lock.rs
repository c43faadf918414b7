//! Mutexes whose value stays usable after a panic of another thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also one that was held by a thread that has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
