//! Queues that have messages and that nobody declares, because their definitions were damaged.
//!
//! A queue that was deleted has messages too, for a while. But the record that it is gone comes after all of its
//! messages, and no checkpoint frees that before it frees those: a queue without it was not deleted.

use std::collections::BTreeSet;

use crate::confirm::Lsn;
use crate::id::{DurableQueueId, VhostId};
use crate::name::Name;
use crate::queue::QueueSettings;
use crate::record::Definition;

/// Those of one start.
#[derive(Debug)]
pub(crate) struct LostQueues {
    vhost: VhostId,
    gone: BTreeSet<DurableQueueId>,
    made: Vec<(Lsn, Definition)>,
}

impl LostQueues {
    /// None yet; they come back in this vhost.
    pub(crate) fn of(vhost: VhostId) -> LostQueues {
        LostQueues { vhost, gone: BTreeSet::new(), made: Vec::new() }
    }

    /// Notes that a queue was deleted.
    pub(crate) fn note_gone(&mut self, queue: DurableQueueId) {
        self.gone.insert(queue);
    }

    /// The definition of a queue that is not declared, under a name that is free; `None` if it was deleted.
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

    /// Those that were made.
    pub(crate) fn made(&self) -> &[(Lsn, Definition)] {
        &self.made
    }
}
