//! The durability plan of a route: which of its queues keep messages on disk, and how safely.

use crate::confirm::Level;
use crate::id::DurableQueueId;

/// The queues that keep a persistent message on disk, and the worth of its confirm.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DurabilityPlan {
    /// The queues that stand in its record.
    pub queues: Vec<DurableQueueId>,
    /// The lowest level among all queues that get it: its confirm promises that.
    pub level: Level,
    /// The highest level: its confirm waits for that.
    pub wait: Level,
    /// Some queue takes no id twice.
    pub has_dedup: bool,
}

impl DurabilityPlan {
    /// The plan for these queues: each with its level and the number its store knows it by; `None` is one that does
    /// not outlive the broker.
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
