//! Those who wait until a queue is shorter, and from where on they do.

use crate::id::ConnectionId;
use crate::limits::{PRESS_BYTES, PRESS_SHARES};
use crate::memory::Gauge;

/// A press while it lasts.
#[derive(Debug)]
pub(super) struct Press {
    /// In the order in which they came.
    waiting: Vec<ConnectionId>,
    /// It is counted here.
    gauge: Gauge,
}

impl Press {
    /// One for which nobody waits yet.
    pub(super) fn begin(gauge: Gauge) -> Press {
        gauge.note_press(true);
        Press { waiting: Vec::new(), gauge }
    }

    /// Lets a publisher wait.
    pub(super) fn add(&mut self, publisher: ConnectionId) {
        if self.waiting.last() != Some(&publisher) {
            self.waiting.push(publisher);
        }
    }

    /// Ends it, and gives those who waited.
    pub(super) fn end(mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.waiting)
    }
}

impl Drop for Press {
    fn drop(&mut self) {
        self.gauge.note_press(false);
    }
}

/// Bytes of memory above which a queue with such a share has its publishers wait.
pub(super) fn pressed_above(share: usize) -> usize {
    share.saturating_add(PRESS_BYTES.min(share.saturating_mul(PRESS_SHARES)))
}
