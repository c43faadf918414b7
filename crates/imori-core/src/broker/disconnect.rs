//! A connection ends, and its sessions begin and end: deliveries go back, readers and inboxes go.

use super::consume::forget_readers;
use super::deliver::{resume_publishers, wake_consumers};
use super::settle::settle_in_queues;
use crate::authorize::{Action, Actor, Object};
use crate::definitions::remove_queue;
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::limits::{READERS_AT_ONCE, SETTLES_AT_ONCE};
use crate::outbound::{HeldAnswers, SessionId, SessionRefusal};
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
