//! The publishers that wait until a queue is shorter, and the length at which they do.

use crate::id::ConnectionId;
use crate::limits::{THROTTLE_BYTES, THROTTLE_SHARES};
use crate::memory::Gauge;

/// The publishers that wait for a queue, for as long as it throttles.
#[derive(Debug)]
pub(crate) struct WaitingPublishers {
    /// In the order of arrival.
    waiting: Vec<ConnectionId>,
    /// The gauge that counts throttling queues.
    gauge: Gauge,
}

impl WaitingPublishers {
    /// Begins throttling; no publisher waits yet.
    pub(crate) fn begin(gauge: Gauge) -> WaitingPublishers {
        gauge.note_throttle(true);
        WaitingPublishers { waiting: Vec::new(), gauge }
    }

    /// Adds a publisher that waits.
    pub(crate) fn add(&mut self, publisher: ConnectionId) {
        if self.waiting.last() != Some(&publisher) {
            self.waiting.push(publisher);
        }
    }

    /// Ends throttling and returns the waiting publishers.
    pub(crate) fn end(mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.waiting)
    }
}

impl Drop for WaitingPublishers {
    fn drop(&mut self) {
        self.gauge.note_throttle(false);
    }
}

/// Bytes of memory above which a queue with this share throttles.
pub(crate) fn throttled_above(share: usize) -> usize {
    share.saturating_add(THROTTLE_BYTES.min(share.saturating_mul(THROTTLE_SHARES)))
}
