//! Access to queues.

use imori_core::entries::Entry;
use imori_core::id::QueueId;
use imori_core::queue::{Peek, PeekPage, PeekPart, Queue};
use tokio::task::spawn_blocking;

use super::broker::Broker;
use crate::shared::queue_key;

impl Broker {
    /// The ids of all queues.
    pub fn queue_ids(&self) -> Vec<QueueId> {
        let keys = self.shared().queues.keys().into_iter();
        keys.map(|key| QueueId { slot: key.slot, generation: key.generation }).collect()
    }

    /// The number of queues.
    pub fn queue_count(&self) -> usize {
        self.shared().queues.len()
    }

    /// Runs `f` on a queue under its lock; `None` if it is gone.
    pub fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&Queue) -> R) -> Option<R> {
        self.shared().queues.with(queue_key(id), |queue| f(queue))
    }

    /// Reads the messages of a page that a peek found on disk; `None` if the page cannot be read now. Blocks on the
    /// disk, so no cell may call it.
    fn read_page(&self, id: QueueId, page: &PeekPage) -> Option<Vec<Entry>> {
        let mut entries = page.pick(self.shared().pager.peek(id, &page.source)?);
        self.with_queue(id, |queue| entries.iter_mut().for_each(|entry| queue.recall(entry)));
        Some(entries)
    }

    /// Collects the entries of a peek and reads those on disk; `None` if not even the first can be read now. Returns
    /// fewer once their bodies exceed `bytes_max`.
    pub async fn read_peek(&self, id: QueueId, found: Peek, bytes_max: usize) -> Option<Vec<Entry>> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut is_whole = !found.is_being_written;
        for part in found.parts {
            let more = match part {
                PeekPart::Entries(more) => Some(more),
                PeekPart::Page(page) => {
                    let broker = self.clone();
                    spawn_blocking(move || broker.read_page(id, &page)).await.ok().flatten()
                }
            };
            let Some(more) = more else {
                is_whole = false;
                break;
            };
            for entry in more {
                bytes += entry.message().view().body.len();
                if bytes > bytes_max && !entries.is_empty() {
                    return Some(entries);
                }
                entries.push(entry);
            }
        }
        (is_whole || !entries.is_empty()).then_some(entries)
    }
}
