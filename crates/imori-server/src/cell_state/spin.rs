//! A cell may look for more to do for a moment before it sleeps: to be woken takes longer than an answer.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use imori_core::time::Time;
use tokio::sync::Notify;

/// How long a cell spins after its last turn, and until when.
#[derive(Debug)]
pub(crate) struct Spin {
    span: Duration,
    until: Cell<Time>,
    is_on: Cell<bool>,
    begins: Arc<Notify>,
}

impl Spin {
    /// Nothing is spun where the span is zero.
    pub(crate) fn new(span: Duration) -> Spin {
        Spin { span, until: Cell::default(), is_on: Cell::new(false), begins: Arc::new(Notify::new()) }
    }

    /// A turn has ended: there may be more to do soon.
    #[inline]
    pub(crate) fn begin(&self, now: Time) {
        if self.span.is_zero() {
            return;
        }
        self.until.set(now.after(self.span));
        if !self.is_on.replace(true) {
            self.begins.notify_one();
        }
    }

    /// Gives the notification that a spin begins.
    pub(crate) fn begins(&self) -> Arc<Notify> {
        Arc::clone(&self.begins)
    }

    /// Tells whether to look once more.
    pub(crate) fn goes_on(&self, now: Time) -> bool {
        let goes_on = now < self.until.get();
        self.is_on.set(goes_on);
        goes_on
    }
}
