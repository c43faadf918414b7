//! Lets a cell poll for new work for a moment before it sleeps, because a wake-up takes longer than a reply.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use imori_core::time::Time;
use tokio::sync::Notify;

/// The spinning of a cell after its last turn: its duration and its end.
#[derive(Debug)]
pub(crate) struct Spin {
    span: Duration,
    until: Cell<Time>,
    is_on: Cell<bool>,
    begins: Arc<Notify>,
}

impl Spin {
    /// Spins for `span` after each turn; zero disables spinning.
    pub(crate) fn new(span: Duration) -> Spin {
        Spin { span, until: Cell::default(), is_on: Cell::new(false), begins: Arc::new(Notify::new()) }
    }

    /// Starts or extends the spin after a turn.
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

    /// The notification that a spin begins.
    pub(crate) fn begins(&self) -> Arc<Notify> {
        Arc::clone(&self.begins)
    }

    /// Whether to poll once more.
    pub(crate) fn goes_on(&self, now: Time) -> bool {
        let goes_on = now < self.until.get();
        self.is_on.set(goes_on);
        goes_on
    }
}
