//! Throttling: publishers wait while a queue grows faster than its pages are written.
//!
//! ```text
//!            too much in memory, and pages are being written
//!   at rest ────────────────────────────────────────────────► throttling
//!      ▲                                                          │
//!      └── little enough, or nothing is being written, or gone ───┘ the publishers resume
//! ```
//!
//! The pager answers for each page that is being written, and the queue is weighed with each answer. So
//! throttling ends even if nothing can be written. Then the alarms of memory and disk hold publishers back.

use super::queue::Queue;
use super::waiting_publishers::{WaitingPublishers, throttled_above};
use crate::features::QueueFeatures;
use crate::id::ConnectionId;

impl Queue {
    /// Whether the queue's publishers have to wait.
    pub fn is_throttling(&self) -> bool {
        self.waiting_publishers.is_some()
    }

    /// Notes that a publisher waits until the queue is shorter; `false` if it does not have to.
    pub fn throttle(&mut self, publisher: ConnectionId) -> bool {
        let Some(throttle) = &mut self.waiting_publishers else { return false };
        throttle.add(publisher);
        true
    }

    /// Begins or ends throttling, if the queue may keep `share` bytes of memory. Returns the connections that
    /// resume. To be called after each [`Queue::page_work`].
    pub fn weigh(&mut self, share: usize) -> Vec<ConnectionId> {
        let is_under_way = self.writing + self.copying > 0;
        if is_under_way && self.ready.memory() + self.delayed_memory() > throttled_above(share) {
            self.waiting_publishers
                .get_or_insert_with(|| Box::new(WaitingPublishers::begin(self.gauge.clone())));
            self.features.add(QueueFeatures::THROTTLE);
            return self.go_on_asking(Vec::new());
        }
        let unthrottled = self.unthrottle();
        self.go_on_asking(unthrottled)
    }

    /// Adds the connections that wait to get one message and can be answered.
    fn go_on_asking(&mut self, mut go_on: Vec<ConnectionId>) -> Vec<ConnectionId> {
        if self.askers.is_some() {
            go_on.append(&mut self.answerable());
        }
        go_on
    }

    /// Ends throttling; returns the publishers that waited.
    pub fn unthrottle(&mut self) -> Vec<ConnectionId> {
        self.waiting_publishers.take().map_or_else(Vec::new, |throttle| throttle.end())
    }
}

#[cfg(test)]
mod tests;
