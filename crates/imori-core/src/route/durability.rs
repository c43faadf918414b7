//! The durability plan of a route: the queues that store its messages on disk, and at which level.

use crate::confirm::Level;
use crate::id::DurableQueueId;

/// The queues that store a persistent message on disk, and the level its confirm promises.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DurabilityPlan {
    /// The queues named in the message's record.
    pub queues: Vec<DurableQueueId>,
    /// The lowest level among all queues of the route; the confirm promises this level.
    pub level: Level,
    /// The highest level among them; the confirm waits for this level.
    pub wait: Level,
    /// Whether some queue de-duplicates by message id.
    pub has_dedup: bool,
    /// Whether some queue is a stream.
    pub has_streams: bool,
}

impl DurabilityPlan {
    /// Builds the plan from each queue's store id and level; `None` is a queue that does not
    /// outlive the broker.
    pub fn among(queues: impl IntoIterator<Item = Option<(DurableQueueId, Level)>>) -> DurabilityPlan {
        let mut plan = DurabilityPlan::default();
        let mut lowest = None;
        for queue in queues {
            let level = queue.map_or(Level::Memory, |(_, level)| level);
            lowest = Some(lowest.map_or(level, |lowest: Level| lowest.min(level)));
            plan.wait = plan.wait.max(level);
            plan.queues.extend(queue.filter(|_| level > Level::Memory).map(|(id, _)| id));
        }
        plan.level = lowest.unwrap_or_default();
        plan
    }
}
