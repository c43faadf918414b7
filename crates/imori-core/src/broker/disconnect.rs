//! Ends connections, opens and ends sessions, and takes over consumers of a client that reconnects.

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
use crate::world::{Quotas as _, World};

/// Ends a connection, or part of it: readers and inboxes are removed, unsettled deliveries are
/// released as failed, exclusive queues are deleted. Late replies to its inboxes are dropped.
/// Returns whether everything was done. If not, call again after others had a turn.
#[must_use]
pub fn disconnect<W: World>(world: &W, actor: &Actor<'_>) -> bool {
    let closed =
        world.with_outbound(actor.connection, |outbound| outbound.close(READERS_AT_ONCE, SETTLES_AT_ONCE));
    let Some(remains) = closed else {
        return true;
    };
    // Readers go first, so that nothing released is offered to them again.
    forget_readers(world, actor, &remains.readers);
    resume_publishers(world, &remains.throttled);
    let outcome = Outcome::Release { failed: true };
    settle_in_queues(world, actor.connection, remains.unsettled, Vec::new(), outcome);
    remains.is_all && delete_exclusive(world, actor)
}

/// Deletes the queues that are exclusive to the actor's connection, as its end does. A client that
/// gets an answer to its goodbye may rely on their deletion.
///
/// Returns whether all were deleted. If not, call again after others had a turn.
#[must_use]
pub fn delete_exclusive<W: World>(world: &W, actor: &Actor<'_>) -> bool {
    let exclusive = world.with_topology(|topology| topology.exclusive_to(actor.connection));
    let (now, later) = exclusive.split_at(exclusive.len().min(READERS_AT_ONCE));
    for queue in now {
        // There are no conditions, so this cannot fail.
        let _ = remove_queue(world, *queue, |_| Ok(()), |_| ());
    }
    later.is_empty()
}

/// Opens a session of the actor's connection. The first session is always open.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::SessionOpen`], [`BrokerError::TooManySessions`],
/// [`BrokerError::Quota`], or [`BrokerError::NoSession`] if the connection is gone.
pub fn open_session<W: World>(world: &W, actor: &Actor<'_>, session: SessionId) -> Result<(), BrokerError> {
    world.authorize(actor, Action::Enter, Object::Vhost)?;
    let opened = world.quotas().open_session(actor, || {
        world.with_outbound(actor.connection, |outbound| outbound.open_session(session))
    })?;
    match opened {
        Some(Ok(())) => Ok(()),
        Some(Err(SessionRefusal::IsOpen)) => Err(BrokerError::SessionOpen(session)),
        Some(Err(SessionRefusal::TooMany { max })) => Err(BrokerError::TooManySessions { max }),
        None => Err(BrokerError::NoSession(session)),
    }
}

/// Ends a session, or part of it: readers and inboxes are removed, and unsettled deliveries are
/// released as failed. `held` decides about its held answers. Other sessions are not affected.
///
/// Returns whether everything was done. If not, call again after others had a turn.
#[must_use]
pub fn end_session<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, held: HeldAnswers) -> bool {
    let ended = world.with_outbound(actor.connection, |outbound| {
        outbound.end_session(session, held, READERS_AT_ONCE, SETTLES_AT_ONCE)
    });
    let Some(remains) = ended else {
        return true;
    };
    // Readers go first, so that nothing released is offered to them again.
    forget_readers(world, actor, &remains.readers);
    let outcome = Outcome::Release { failed: true };
    settle_in_queues(world, actor.connection, remains.unsettled, Vec::new(), outcome);
    remains.is_all
}

/// Limits the unsettled deliveries of a session, in addition to the credit of each reader; `None`
/// is unlimited.
pub fn set_window<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, window: Option<u32>) {
    let wake = world.with_outbound(actor.connection, |outbound| outbound.set_window(session, window));
    wake_consumers(world, actor.connection, wake.flatten().as_slice());
}

/// Ends the consumers of a queue with this name, on any connection, so that the actor can consume
/// in their place.
///
/// Their connections are told through [`taken_over`](crate::outbound::Encoder::taken_over). Their
/// unsettled deliveries are released as failed. Callers must put the user, and anything else that
/// tells clients apart, into the name, because it alone decides which consumer is ended.
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
