//! A connection ends: what it had goes back, what was its own goes.

use super::consume::forget_readers;
use super::delete::remove_queue;
use super::deliver::resume_publishers;
use super::settle::settle_in_queues;
use crate::authorize::Actor;
use crate::delivery::Outcome;
use crate::limits::READERS_AT_ONCE;
use crate::world::World;

/// Ends a connection for the broker, or does a part of it: readers and inboxes vanish, unsettled deliveries
/// are released as failed, exclusive queues are deleted. Late replies to its inboxes find nothing. Says
/// whether that was all; if not, the caller comes back after others had their turn.
#[must_use]
pub fn disconnect<W: World>(world: &W, actor: &Actor<'_>) -> bool {
    let closed = world.with_outbound(actor.connection, |outbound| outbound.close(READERS_AT_ONCE));
    let Some(remains) = closed else {
        return true;
    };
    // The readers go first, so that nothing released is offered to them again.
    forget_readers(world, actor, &remains.readers);
    resume_publishers(world, &remains.pressing);
    if !remains.is_all {
        return false;
    }
    settle_in_queues(
        world,
        actor.connection,
        remains.unsettled,
        Vec::new(),
        Outcome::Release { failed: true },
    );
    let exclusive = world.with_topology(|topology| topology.exclusive_to(actor.connection));
    for queue in exclusive {
        // It has no conditions.
        let _ = remove_queue(world, queue, |_| Ok(()));
    }
    true
}
