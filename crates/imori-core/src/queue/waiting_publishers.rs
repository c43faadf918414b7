//! Publishers that wait until a queue is shorter, and the length at which they do.

use crate::id::ConnectionId;
use crate::limits::{THROTTLE_BYTES, THROTTLE_SHARES};
use crate::memory::Gauge;

/// A throttle while it lasts: the publishers that wait for a queue.
#[derive(Debug)]
pub(crate) struct WaitingPublishers {
    /// In the order in which they came.
    waiting: Vec<ConnectionId>,
    /// The gauge that counts the queue as throttling.
    gauge: Gauge,
}

impl WaitingPublishers {
    /// Begins throttling; no publisher waits yet.
    pub(crate) fn begin(gauge: Gauge) -> WaitingPublishers {
        gauge.note_throttle(true);
        WaitingPublishers { waiting: Vec::new(), gauge }
    }

    /// Lets a publisher wait.
    pub(crate) fn add(&mut self, publisher: ConnectionId) {
        if self.waiting.last() != Some(&publisher) {
            self.waiting.push(publisher);
        }
    }

    /// Ends it, and gives those who waited.
    pub(crate) fn end(mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.waiting)
    }
}

impl Drop for WaitingPublishers {
    fn drop(&mut self) {
        self.gauge.note_throttle(false);
    }
}

/// Bytes of memory above which a queue with such a share has its publishers wait.
pub(crate) fn throttled_above(share: usize) -> usize {
    share.saturating_add(THROTTLE_BYTES.min(share.saturating_mul(THROTTLE_SHARES)))
}
