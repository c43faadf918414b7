//! Delivers verdicts of slow logins to the waiting connections.

use std::sync::Weak;

use imori_core::id::ConnectionId;
use imori_core::login::{Login, Verdict};

use crate::audit::ClaimedUser;
use crate::login::Verdicts;
use crate::shared::Shared;

/// Finds connections by id; weak, so that it does not keep the broker alive.
pub(crate) struct LinkVerdicts(pub(crate) Weak<Shared>);

impl Verdicts for LinkVerdicts {
    fn is_awaited(&self, connection: ConnectionId) -> bool {
        self.0.upgrade().is_some_and(|shared| shared.with_link(connection, |_| ()).is_some())
    }

    fn tell(&self, login: &Login, verdict: Verdict) {
        if let Some(shared) = self.0.upgrade() {
            shared.note_login(login.connection, &ClaimedUser::of(&login.credentials), &verdict);
            shared.with_link(login.connection, |link| link.tell_verdict(verdict));
        }
    }
}
