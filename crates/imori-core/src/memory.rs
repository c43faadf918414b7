//! How much memory the messages that wait take.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of bytes that many share. What it says may be a moment old.
#[derive(Debug, Default, Clone)]
pub struct Gauge(Arc<AtomicUsize>);

impl Gauge {
    /// Charges `bytes`.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Gives back `bytes` that were charged before.
    pub fn sub(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes charged now.
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
