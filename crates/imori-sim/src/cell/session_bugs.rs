//! Bugs planted between the broker and the sessions of a connection: releases, held answers,
//! windows.

use imori_core::authorize::{Actor, Identity};
use imori_core::broker;
use imori_core::delivery::Outcome;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::outbound::{Numbers, Outbound, SessionId};
use imori_server::turn::Host;

use super::world::CellWorld;
use crate::machine::{CHANNELS_MAX, Spoken};
use crate::planted::Bug;

/// Deliveries that all sessions of a connection share under a planted bug.
const SHARED_WINDOW: usize = 2;

impl CellWorld<'_> {
    /// Runs `f` and notes, for planted bugs, whether it ended a session of the connection.
    pub(super) fn watch_sessions<R>(&self, outbound: &mut Outbound, f: impl FnOnce(&mut Outbound) -> R) -> R {
        if !self.shared.has(Bug::SessionForgotten) && !self.shared.has(Bug::NeighbourReleased) {
            return f(outbound);
        }
        let before = open(outbound).count();
        let result = f(outbound);
        let has_ended = open(outbound).count() < before;
        self.is_session_ending.set(has_ended);
        self.has_session_ended.set(has_ended || self.has_session_ended.get());
        result
    }

    /// Applies planted bugs to the sessions of a connection after its turn.
    pub(super) fn meddle(&self, connection: ConnectionId) {
        let (identity, vhost) = (Identity::broker(), VhostId(0));
        let actor = Actor { identity: &identity, connection, vhost };
        let of_sessions = |outbound: &mut Outbound| -> Vec<(SessionId, usize)> {
            let len = |session| outbound.meant(session, Numbers::All, 0).len();
            open(outbound).map(|session| (session, len(session))).collect()
        };
        if self.shared.has(Bug::NeighbourReleased) && self.has_session_ended.take() {
            let sessions =
                self.with_link(connection, |link| of_sessions(&mut link.outbound)).unwrap_or_default();
            for (session, _) in sessions {
                let outcome = Outcome::Release { failed: true };
                drop(broker::settle(self, &actor, session, Numbers::All, outcome));
            }
        }
        if self.shared.has(Bug::WindowShared) {
            let sessions =
                self.with_link(connection, |link| of_sessions(&mut link.outbound)).unwrap_or_default();
            let left = SHARED_WINDOW.saturating_sub(sessions.iter().map(|(_, own)| own).sum());
            for (session, own) in sessions {
                broker::set_window(self, &actor, session, Some((own + left) as u32));
            }
        }
    }

    /// Whether a planted bug keeps these bytes until no session of the connection has held answers.
    pub(super) fn keeps_back(&self, connection: ConnectionId, pipe: usize, bytes: &[u8]) -> bool {
        if !self.shared.has(Bug::SessionsWaitTogether) {
            return false;
        }
        let waits = self.with_link(connection, |link| link.outbound.has_held_answers()) == Some(true);
        let mut pipe = self.shared.network.pipe(pipe);
        let is_kept = waits && matches!(pipe.spoken, Spoken::Toy);
        match is_kept {
            true => pipe.kept_back.extend_from_slice(bytes),
            false => {
                let kept_back = std::mem::take(&mut pipe.kept_back);
                pipe.to_client.extend(kept_back);
            }
        }
        is_kept
    }
}

/// The open sessions of a connection, without the first.
fn open(outbound: &Outbound) -> impl Iterator<Item = SessionId> {
    let channels = (1..=CHANNELS_MAX).map(|channel| SessionId(channel as u16));
    channels.filter(|session| outbound.has_session(*session))
}
