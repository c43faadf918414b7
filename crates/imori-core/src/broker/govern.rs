//! Policies of a vhost change, and act at once on what is there.

use super::deliver::change_and_deliver;
use crate::id::{QueueId, VhostId};
use crate::policy::Policies;
use crate::world::World;

/// Sets the policies of a vhost, which act at once on its exchanges and on all that is declared from now on. Gives the
/// queues that are there, for [`apply_policies`].
pub fn set_policies<W: World>(world: &W, vhost: VhostId, policies: Policies) -> Vec<QueueId> {
    world.with_topology(|topology| {
        topology.set_policies(vhost, policies);
        topology.table().queues(vhost).map(|(_, id)| id).collect()
    })
}

/// Lets the policies of their vhost, as they are now, act on these queues: what the settings in effect do not let wait
/// is dropped or dead-lettered. A queue on which the same policies act as before is left alone.
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
