//! Changes a queue and delivers the messages that this makes deliverable.

use crate::delivery::Delivery;
use crate::id::{ConnectionId, QueueId, Reader};
use crate::outbound::{Outbound, SharedHeaders, Wake};
use crate::pipeline::{FollowUps, offer, publish_dead_letters, publish_outgoing, record_effects};
use crate::queue::{Effects, Queue};
use crate::room::Room;
use crate::world::World;

/// Changes a queue, delivers what has become deliverable, and performs the follow-ups. `None` if
/// the queue is gone.
pub(super) fn change_and_deliver<W: World, R>(
    world: &W,
    id: QueueId,
    change: impl FnOnce(&mut Queue, &mut Effects) -> R,
) -> Option<R> {
    let now = world.now();
    let allowance = world.room().allow();
    let mut effects = Effects::allowed(&allowance);
    let (result, vhost, follow_ups) = world.with_queue(id, |queue| {
        let result = change(queue, &mut effects);
        let mut offer = |reader, delivery: &Delivery<'_>| {
            offer(world, id, reader, delivery, &mut SharedHeaders::for_receivers(1))
        };
        queue.deliver(now, &mut offer, &mut effects);
        queue.end_drains(|reader, name, is_all| {
            let end = |outbound: &mut Outbound| outbound.end_drain(reader.id, name, is_all);
            world.with_outbound(reader.connection, end).unwrap_or(true)
        });
        let follow_ups = FollowUps::of(world, (id, queue), &mut effects, now);
        // Only a stream has outgoing messages, and a stream always has follow-ups.
        (result, queue.vhost(), follow_ups.map(|follow_ups| (follow_ups, queue.take_outgoing())))
    })?;
    let outgoing = follow_ups.map(|(follow_ups, outgoing)| {
        follow_ups.run(world, id);
        outgoing
    });
    let mut dead = Vec::new();
    record_effects(world, &mut effects, &mut dead);
    if !dead.is_empty() {
        publish_dead_letters(world, vhost, dead);
    }
    if let Some(outgoing) = outgoing.filter(|outgoing| !outgoing.is_empty()) {
        publish_outgoing(world, vhost, outgoing);
    }
    Some(result)
}

/// Resumes publishers that waited for a connection to catch up, as
/// [`Outbound::written`](crate::outbound::Outbound::written) reports them.
pub fn resume_publishers<W: World>(world: &W, publishers: &[ConnectionId]) {
    for publisher in publishers {
        world.resume(*publisher);
    }
}

/// Offers more messages to consumers of a connection that have room again, as
/// [`Outbound::written`](crate::outbound::Outbound::written) reports them.
pub fn wake_consumers<W: World>(world: &W, connection: ConnectionId, wakes: &[Wake]) {
    for wake in wakes {
        let mut next = Some(*wake);
        while let Some(Wake { queue, reader, line }) = next {
            let reader = Reader { connection, id: reader };
            change_and_deliver(world, queue, |queue, _| queue.wake(reader));
            // The consumer may not have used the session's window; offer it to the next in line.
            let others = |session| world.with_outbound(connection, |outbound| outbound.next_in_line(session));
            next = line.and_then(others).flatten();
        }
    }
}
