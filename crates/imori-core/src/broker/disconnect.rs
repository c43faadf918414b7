//! A connection ends, its sessions begin and end, or its client goes on elsewhere: deliveries go back, readers and
//! inboxes go.

use super::consume::{forget_readers, leave_queue};
use super::deliver::{resume_publishers, wake_consumers};
use super::settle::settle_in_queues;
use crate::authorize::{Action, Actor, Object};
use crate::definitions::remove_queue;
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::{QueueId, Reader};
use crate::limits::{READERS_AT_ONCE, SETTLES_AT_ONCE};
use crate::name::Name;
use crate::outbound::{HeldAnswers, Numbers, SessionId, SessionRefusal, Settled};
use crate::world::World;

/// Ends a connection for the broker, or does a part of it: readers and inboxes vanish, unsettled deliveries
/// are released as failed, exclusive queues are deleted. Late replies to its inboxes find nothing. Says
/// whether that was all; if not, the caller comes back after others had their turn.
#[must_use]
pub fn disconnect<W: World>(world: &W, actor: &Actor<'_>) -> bool {
    let closed =
        world.with_outbound(actor.connection, |outbound| outbound.close(READERS_AT_ONCE, SETTLES_AT_ONCE));
    let Some(remains) = closed else {
        return true;
    };
    // The readers go first, so that nothing released is offered to them again.
    forget_readers(world, actor, &remains.readers);
    resume_publishers(world, &remains.throttled);
    let outcome = Outcome::Release { failed: true };
    settle_in_queues(world, actor.connection, remains.unsettled, Vec::new(), outcome);
    remains.is_all && delete_exclusive(world, actor)
}

/// Deletes the queues that belong to the actor's connection alone, as its end does. A client that says goodbye and is
/// answered may take them for gone.
///
/// Returns whether those were all. If not, the caller comes back after others had their turn.
#[must_use]
pub fn delete_exclusive<W: World>(world: &W, actor: &Actor<'_>) -> bool {
    let exclusive = world.with_topology(|topology| topology.exclusive_to(actor.connection));
    let (now, later) = exclusive.split_at(exclusive.len().min(READERS_AT_ONCE));
    for queue in now {
        // It has no conditions.
        let _ = remove_queue(world, *queue, |_| Ok(()), |_| ());
    }
    later.is_empty()
}

/// Opens a session of the actor's connection. The first is open from the start.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::SessionOpen`], [`BrokerError::TooManySessions`], [`BrokerError::Quota`], or
/// [`BrokerError::NoSession`] where the connection is gone.
pub fn open_session<W: World>(world: &W, actor: &Actor<'_>, session: SessionId) -> Result<(), BrokerError> {
    world.authorize(actor, Action::Enter, Object::Vhost)?;
    let opened = world.open_session(actor, || {
        world.with_outbound(actor.connection, |outbound| outbound.open_session(session))
    })?;
    match opened {
        Some(Ok(())) => Ok(()),
        Some(Err(SessionRefusal::IsOpen)) => Err(BrokerError::SessionOpen(session)),
        Some(Err(SessionRefusal::TooMany { max })) => Err(BrokerError::TooManySessions { max }),
        None => Err(BrokerError::NoSession(session)),
    }
}

/// Ends a session, or does a part of it. Its readers and inboxes vanish, and its unsettled deliveries are released as
/// failed. Its waiting answers are treated as `held` says. No other session notices.
///
/// Returns whether that was all. If not, the caller comes back after others had their turn.
#[must_use]
pub fn end_session<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, held: HeldAnswers) -> bool {
    let ended = world.with_outbound(actor.connection, |outbound| {
        outbound.end_session(session, held, READERS_AT_ONCE, SETTLES_AT_ONCE)
    });
    let Some(remains) = ended else {
        return true;
    };
    // The readers go first, so that nothing released is offered to them again.
    forget_readers(world, actor, &remains.readers);
    let outcome = Outcome::Release { failed: true };
    settle_in_queues(world, actor.connection, remains.unsettled, Vec::new(), outcome);
    remains.is_all
}

/// Lets so many deliveries of a session be unsettled at once, or any number, beside the credit of each reader.
pub fn set_window<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, window: Option<u32>) {
    let wake = world.with_outbound(actor.connection, |outbound| outbound.set_window(session, window));
    wake_consumers(world, actor.connection, wake.flatten().as_slice());
}

/// Ends the consumers of a queue that have this name, on whatever connection, so that the actor can be the next one.
///
/// Their connections are told by [`taken_over`](crate::outbound::Encoder::taken_over). Deliveries that they have not
/// settled are released as failed. The name says whose the consumer is: callers put into it the user, and all else by
/// which clients are told apart.
///
/// # Errors
/// [`BrokerError::Refused`].
pub fn take_over<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (queue, queue_name): (QueueId, &[u8]),
    name: &Name,
) -> Result<(), BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(queue_name))?;
    let consumers: Vec<Reader> =
        world.with_queue(queue, |queue| queue.consumers().collect()).unwrap_or_default();
    for consumer in consumers {
        let ended = world.with_outbound(consumer.connection, |outbound| {
            outbound.take_over_reader(consumer.id, queue, name)
        });
        let Some(session) = ended.flatten() else { continue };
        leave_queue(world, queue, consumer);
        let (numbers, outcome) = (Numbers::AllOf(consumer.id), Outcome::Release { failed: true });
        let mut has_more = true;
        while has_more {
            let settled = world.with_outbound(consumer.connection, |outbound| {
                outbound.settle(session, numbers, SETTLES_AT_ONCE, outcome)
            });
            let settled: Settled = settled.unwrap_or_default();
            has_more = settled.has_more;
            settle_in_queues(world, consumer.connection, settled.deliveries, settled.wakes, outcome);
        }
    }
    Ok(())
}
