//! Changes of a client's user and of its access token, after the login.

use super::inbound::{Inbound, Phase};
use crate::authorize::{Action, Identity, Object, Renewal, authorize};
use crate::broker::{self, Actor};
use crate::login::{Credentials, Verdict};
use crate::outbound::CutReason;
use crate::turn::Notice;
use crate::world::World;

/// Applies a change of a user, if it concerns this client. Readers that are no longer allowed end,
/// and parked frames are decided by the new rights. The connection ends if the user may no longer be
/// in its vhost.
///
/// Returns whether the connection has ended; [`Next::Close`](crate::turn::Next::Close) follows.
#[must_use]
pub fn renew<I: Inbound, W: World>(inbound: &mut I, world: &W, renewal: &Renewal) -> bool {
    inbound.intake_mut().renew(renewal);
    if inbound.phase() == Phase::Closed || !renewal.concerns(inbound.actor().identity) {
        return false;
    }
    match renewal.identity.clone() {
        Some(identity) => change_identity(inbound, world, identity),
        None => revoke(inbound, world),
    }
    inbound.phase() == Phase::Closed
}

/// Replaces the access token that the client logged in with; returns whether the new one is
/// accepted. The user must stay the same. A client that did not log in with a token keeps its
/// identity.
///
/// Returns `None` if the check takes longer, as [`Intake::verify`](super::Intake::verify) does. If
/// the new rights exclude this vhost, the connection is cut, as [`Inbound::phase`] then shows.
pub fn renew_token<I: Inbound, W: World>(inbound: &mut I, world: &W, token: &[u8]) -> Option<bool> {
    let Actor { identity, connection, .. } = inbound.actor();
    if identity.rights.valid_until().is_none() {
        return Some(true);
    }
    let user = identity.user.clone();
    let credentials = Credentials::password(Some(user.as_bytes()), Some(token));
    match inbound.intake_mut().verify(world, connection, credentials)? {
        // SECURITY AUTH-10: the token of another user needs a connection of its own.
        Verdict::Granted(identity) if identity.user == user => change_identity(inbound, world, identity),
        _ => return Some(false),
    }
    Some(true)
}

/// Ends the connection and logs the reason.
pub(super) fn end_login<I: Inbound, W: World>(
    inbound: &mut I,
    world: &W,
    kind: &'static str,
    reason: CutReason,
) {
    inbound.intake_mut().notice = Some(Notice::refused(kind, reason.to_string()));
    world.with_outbound(inbound.actor().connection, |outbound| outbound.cut(reason));
    inbound.close();
}

/// Switches to another identity of the same user, or ends the connection if that one may not be in
/// its vhost.
fn change_identity<I: Inbound, W: World>(inbound: &mut I, world: &W, identity: Identity) {
    let vhost = inbound.actor().vhost;
    if inbound.is_logged_in() && authorize(&identity, Action::Enter, vhost, Object::Vhost).is_err() {
        return revoke(inbound, world);
    }
    inbound.set_identity(identity);
    let revoked = broker::recheck_readers(world, &inbound.actor());
    if !revoked.is_empty() {
        inbound.readers_revoked(world, revoked);
    }
}

/// Ends the connection because its user was removed or may no longer be in its vhost.
fn revoke<I: Inbound, W: World>(inbound: &mut I, world: &W) {
    let user = inbound.actor().identity.user.clone();
    end_login(inbound, world, "login revoked", CutReason::Revoked { user });
}
