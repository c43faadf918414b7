//! A connection ends: what it had goes back, what was its own goes.

use super::actor::Actor;
use super::consume::forget_readers;
use super::delete::remove_queue;
use super::deliver::resume_publishers;
use super::settle::settle_in_queues;
use crate::delivery::Outcome;
use crate::world::World;

/// Readers that are forgotten under one lock of the topology, which others wait for.
const READERS_AT_ONCE: usize = 256;

/// Ends a connection for the broker: unsettled deliveries are released as failed, readers and
/// inboxes vanish, exclusive queues are deleted. Late replies to its inboxes find nothing.
pub fn disconnect<W: World>(world: &W, actor: &Actor<'_>) {
    let Some(remains) = world.with_outbound(actor.connection, |outbound| outbound.close()) else {
        return;
    };
    // The readers go first, so that nothing released is offered to them again.
    for readers in remains.readers.chunks(READERS_AT_ONCE) {
        forget_readers(world, actor, readers);
    }
    settle_in_queues(
        world,
        actor.connection,
        remains.unsettled,
        Vec::new(),
        Outcome::Release { failed: true },
    );
    resume_publishers(world, &remains.pressing);
    let exclusive = world.with_topology(|topology| topology.exclusive_to(actor.connection));
    for queue in exclusive {
        remove_queue(world, queue);
    }
}
