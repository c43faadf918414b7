//! Changes the policies of a vhost and applies them to existing queues.

use super::deliver::change_and_deliver;
use crate::id::{QueueId, VhostId};
use crate::policy::Policies;
use crate::world::World;

/// Sets the policies of a vhost, in effect at once for its exchanges and for everything declared
/// from now on. Returns the existing queues, for [`apply_policies`].
pub fn set_policies<W: World>(world: &W, vhost: VhostId, policies: Policies) -> Vec<QueueId> {
    world.with_topology(|topology| {
        topology.set_policies(vhost, policies);
        topology.table().queues(vhost).map(|(_, id)| id).collect()
    })
}

/// Applies the vhost's current policies to these queues. Messages beyond the new limits are dropped
/// or dead-lettered. A queue with unchanged policies is skipped.
pub fn apply_policies<W: World>(world: &W, vhost: VhostId, queues: &[QueueId]) {
    let now = world.now();
    let policies = world.with_router(|_, table| table.policies(vhost));
    for id in queues {
        let changed = world.with_queue(*id, |queue| {
            let matched = policies.of_queue(queue.name().as_bytes(), queue.declared().kind);
            (!queue.is_governed_by(&matched)).then_some(matched)
        });
        if let Some(matched) = changed.flatten() {
            change_and_deliver(world, *id, |queue, effects| {
                queue.govern(matched, now);
                queue.enforce(now, effects);
            });
        }
    }
}
