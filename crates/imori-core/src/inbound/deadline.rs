//! The deadlines of a connection: login, access token and heart-beats.

use super::inbound::{Inbound, Phase};
use super::renew::end_login;
use crate::outbound::CutReason;
use crate::turn::Next;
use crate::world::World;

/// Handles the deadlines of a connection that have passed.
pub fn tick<I: Inbound, W: World>(inbound: &mut I, world: &W) -> Next {
    if inbound.phase() == Phase::Closed {
        return Next::Close;
    }
    let identity = inbound.actor().identity;
    if identity.rights.valid_until().is_some_and(|end| end <= world.now()) {
        let user = identity.user.clone();
        end_login(inbound, world, "token expired", CutReason::TokenExpired { user });
        return Next::Close;
    }
    // SECURITY LIM-02: trickling bytes does not extend the time to log in.
    match inbound.intake().reading.login_until() {
        Some(until) if until <= world.now() => inbound.login_timed_out(world),
        _ => inbound.keep_alive(world),
    }
    match inbound.phase() {
        Phase::Closed => Next::Close,
        _ if inbound.intake().reading.is_paused() => Next::Parked,
        _ => Next::More { frame_bytes: None },
    }
}
