//! Access to queues.

use imori_core::entries::Entry;
use imori_core::id::QueueId;
use imori_core::queue::{PeekPage, Queue};

use super::broker::Broker;
use crate::shared::queue_key;

impl Broker {
    /// The ids of all queues.
    pub fn queue_ids(&self) -> Vec<QueueId> {
        let keys = self.shared().queues.keys().into_iter();
        keys.map(|key| QueueId { slot: key.slot, generation: key.generation }).collect()
    }

    /// Runs `f` on a queue under its lock; `None` if it is gone.
    pub fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&Queue) -> R) -> Option<R> {
        self.shared().queues.with(queue_key(id), |queue| f(queue))
    }

    /// Reads the messages of a page that a peek found on disk; `None` if the page cannot be read now. Blocks on the
    /// disk, so no cell may call it.
    pub fn read_page(&self, id: QueueId, page: &PeekPage) -> Option<Vec<Entry>> {
        let mut entries = page.pick(self.shared().pager.peek(id, &page.source)?);
        self.with_queue(id, |queue| entries.iter_mut().for_each(|entry| queue.recall(entry)));
        Some(entries)
    }
}
