//! Waiting: a login under verification, a publish that is parked, a client that has left.

use super::inbound::{Inbound, Phase, pause};
use crate::broker;
use crate::login::Verdict;
use crate::outbound::SessionId;
use crate::turn::Next;
use crate::world::World;

/// Resumes a login with the verdict of a check that took longer than a turn. After [`Next::Again`]
/// the caller continues with [`Inbound::receive`] and the rest of the input.
pub fn verified<I: Inbound>(inbound: &mut I, verdict: Verdict) -> Next {
    if inbound.phase() == Phase::Closed {
        return Next::Close;
    }
    inbound.intake_mut().decided(verdict);
    Next::Again
}

/// Makes a publishing frame wait.
///
/// The frame is parked if reading on may free memory, and the frames behind it are read. Otherwise
/// it stays in the input, and the next step is returned.
#[cold]
pub fn park<I: Inbound, W: World>(
    inbound: &mut I,
    world: &W,
    session: SessionId,
    frame: impl FnOnce() -> Box<[u8]>,
) -> Option<Next> {
    if !inbound.does_more_than_publish(world) {
        return Some(pause(inbound));
    }
    inbound.intake_mut().parking.push(session, frame(), world.gauge());
    None
}

/// Releases everything that the client had, after its transport was lost.
///
/// Returns whether everything was released. If not, call again after other connections had a turn.
#[must_use]
pub fn disconnect<I: Inbound, W: World>(inbound: &mut I, world: &W) -> bool {
    inbound.close();
    broker::disconnect(world, &inbound.actor())
}
