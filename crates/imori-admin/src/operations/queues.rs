//! Queues: their facts, deletion and purge.

use imori_core::activity::QueueActivity;
use imori_core::arguments::arguments_of;
use imori_core::broker::DeleteOptions;
use imori_core::id::{QueueId, VhostId};
use imori_core::internal::{Done, Verb};
use imori_core::name::Name;
use imori_core::policy::Matched;
use imori_core::queue::{PeekPart, Queue, QueueSettings};
use imori_core::time::Time;
use imori_server::broker::Broker;
use imori_server::json_value::shown;
use serde_json::{Map, Value};

use super::connections::name as connection_name;
use super::vhost_operator::VhostOperator;
use crate::objects::operation_error::OperationError;

/// The queues of these vhosts, sorted by name within each, from one snapshot of the routing table.
pub(crate) fn queue_ids(broker: &Broker, vhosts: &[VhostId]) -> Vec<(Name, QueueId)> {
    let table = broker.table();
    let mut ids = Vec::new();
    for vhost in vhosts {
        let start = ids.len();
        ids.extend(table.queues(*vhost).map(|(name, id)| (name.clone(), id)));
        if let Some(of_vhost) = ids.get_mut(start..) {
            of_vhost.sort_unstable();
        }
    }
    ids
}

/// The facts about a queue that the admin APIs show.
pub(crate) struct QueueFacts {
    pub(crate) vhost: String,
    pub(crate) name: Name,
    /// The settings of its declaration, without policies.
    pub(crate) settings: QueueSettings,
    /// The policies that match it.
    pub(crate) matched: Matched,
    pub(crate) ready: usize,
    pub(crate) ready_bytes: u64,
    pub(crate) unsettled: usize,
    /// Messages whose delay has not ended.
    pub(crate) delayed: usize,
    pub(crate) consumers: usize,
    /// When the message that is next began to wait, if that is known.
    pub(crate) waits_since: Option<Time>,
    /// Publishers wait for the queue.
    pub(crate) is_throttling: bool,
    pub(crate) activity: QueueActivity,
    /// The connection that the queue is exclusive to.
    pub(crate) owner: Option<String>,
}

impl QueueFacts {
    /// Copies the facts of a queue under its lock; `None` if the queue is gone.
    pub(crate) fn of(broker: &Broker, id: QueueId) -> Option<QueueFacts> {
        let (vhost, facts) = broker.with_queue(id, copy)?;
        let owner = facts.settings.exclusive_to;
        let owner =
            owner.and_then(|owner| broker.with_connection(owner, |connection| connection_name(connection)));
        Some(QueueFacts { vhost: broker.vhost_name(vhost), owner, ..facts })
    }
}

/// When the message that is next began to wait. Unknown for one on disk; messages of a stream stay, so that the age of the
/// first says nothing.
pub(crate) fn waits_since(queue: &Queue) -> Option<Time> {
    let has_next = queue.ready_len() > 0 && !queue.is_stream();
    let next = has_next.then(|| queue.peek(0, 1)).and_then(|peek| peek.parts.into_iter().next());
    match next {
        Some(PeekPart::Entries(entries)) => entries.first().map(|entry| entry.envelope().since),
        Some(PeekPart::Page(_)) | None => None,
    }
}

fn copy(queue: &Queue) -> (VhostId, QueueFacts) {
    let facts = QueueFacts {
        vhost: String::new(),
        name: queue.name().clone(),
        settings: queue.declared().clone(),
        matched: queue.matched(),
        ready: queue.ready_len(),
        ready_bytes: queue.ready_bytes(),
        unsettled: queue.unsettled_len(),
        delayed: queue.delayed_len(),
        consumers: queue.consumers_len(),
        waits_since: waits_since(queue),
        is_throttling: queue.is_throttling(),
        activity: *queue.activity(),
        owner: None,
    };
    (queue.vhost(), facts)
}

/// The arguments that would declare the queue again.
pub(crate) fn arguments(settings: &QueueSettings) -> Map<String, Value> {
    arguments_of(settings).map(|(name, value)| (name.to_owned(), shown(&value))).collect()
}

impl VhostOperator {
    /// Deletes a queue with its messages, if `options` allow it.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn delete_queue(
        &self,
        name: &str,
        options: DeleteOptions,
    ) -> Result<(), OperationError> {
        self.run(Verb::DeleteQueue { queue: Name::from(name), options }).await.map(drop)
    }

    /// The number of waiting messages, which a deletion or a purge would drop.
    ///
    /// # Errors
    /// There is no such queue.
    pub(crate) fn would_drop(&self, name: &str) -> Result<usize, OperationError> {
        let ready = self.broker.with_queue(self.queue(name)?, |queue| queue.ready_len());
        ready.ok_or_else(|| OperationError::Missing("queue", name.to_owned()))
    }

    /// Drops the waiting messages of a queue; returns their number.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn purge_queue(&self, name: &str) -> Result<usize, OperationError> {
        match self.run(Verb::Purge { queue: Name::from(name) }).await? {
            Done::Dropped(count) => Ok(count),
            _ => Err(OperationError::Ended),
        }
    }
}
