//! Queues that have messages but no declaration, because their definitions were damaged.
//!
//! A deleted queue has messages too, for a while. But the record of its deletion follows all of its messages,
//! and checkpoints free records in order. So a queue without that record was not deleted.

use std::collections::BTreeSet;

use crate::confirm::Lsn;
use crate::id::{DurableQueueId, VhostId};
use crate::name::Name;
use crate::queue::QueueSettings;
use crate::record::Definition;

/// The lost queues that one start finds.
#[derive(Debug)]
pub(crate) struct LostQueues {
    vhost: VhostId,
    gone: BTreeSet<DurableQueueId>,
    made: Vec<(Lsn, Definition)>,
}

impl LostQueues {
    /// Creates an empty set; lost queues are declared anew in this vhost.
    pub(crate) fn of(vhost: VhostId) -> LostQueues {
        LostQueues { vhost, gone: BTreeSet::new(), made: Vec::new() }
    }

    /// Notes that a queue was deleted.
    pub(crate) fn note_gone(&mut self, queue: DurableQueueId) {
        self.gone.insert(queue);
    }

    /// Makes a definition for an undeclared queue, under a free name; `None` if the queue was deleted.
    pub(crate) fn make(
        &mut self,
        queue: DurableQueueId,
        is_free: &dyn Fn(VhostId, &str) -> bool,
    ) -> Option<Definition> {
        if self.gone.contains(&queue) {
            return None;
        }
        let plain = format!("lost-{}", queue.0);
        let others = (2..).map(|number| format!("{plain}-{number}"));
        let name = std::iter::once(plain.clone()).chain(others).find(|name| is_free(self.vhost, name))?;
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let definition = Definition::Queue { vhost: self.vhost, name: Name::from(name.as_str()), settings };
        self.made.push((Lsn(queue.0), definition.clone()));
        Some(definition)
    }

    /// The definitions made for lost queues.
    pub(crate) fn made(&self) -> &[(Lsn, Definition)] {
        &self.made
    }
}
