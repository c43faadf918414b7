//! The tenure of a long answer: whether its requester would still be admitted. A change of users, roles, tokens or keys
//! counts before the next event, and ends a quiet answer soon after.

use std::sync::Arc;

use super::admission::{Admitted, operator_or_user, requester_of};
use crate::access::{Requester, Resource};
use crate::authorization::may_of;
use crate::engine::Engine;

/// The admission of a long answer.
pub(super) struct Tenure {
    admitted: Admitted,
    /// The id and the mark of the password of a stored user who has logged in.
    user: Option<(String, Option<String>)>,
    /// The state of users and credentials in which it was last asked.
    seen: u64,
}

impl Tenure {
    /// The tenure of a request that has just been admitted.
    pub(super) fn new(engine: &Engine, admitted: Admitted) -> Tenure {
        let seen = engine.admissions_changed();
        let Requester { name, is_local, bearer_until, .. } = admitted.requester;
        let is_login = !is_local && bearer_until.is_none() && admitted.credential.is_none();
        Tenure { user: is_login.then(|| user(engine, name)).flatten(), seen, admitted }
    }

    /// Whether the requester would be admitted again.
    pub(super) async fn holds(&mut self, engine: &Arc<Engine>) -> bool {
        let now = engine.admissions_changed();
        let has_ended = self.admitted.requester.bearer_until.is_some_and(|end| end <= engine.now());
        if now == self.seen && !has_ended {
            return true;
        }
        self.seen = now;
        !has_ended && self.is_admitted(engine).await
    }

    async fn is_admitted(&self, engine: &Arc<Engine>) -> bool {
        let Admitted { requester, credential, need } = &self.admitted;
        let requester = if requester.is_local {
            Some(*requester).filter(|_| engine.is_open())
        } else if let Some(credential) = credential {
            let holder = credential.holder(engine).await;
            holder.and_then(|holder| requester_of(engine, &holder).ok())
        } else if let Some(known) = &self.user {
            let is_same = user(engine, requester.name).as_ref() == Some(known);
            let identity = engine.broker.access().identity_of(requester.name).filter(|_| is_same);
            identity.and_then(|identity| operator_or_user(engine, &identity).ok())
        } else {
            // The operator of this machine, or the bearer of an access token, whose rights stand in it.
            Some(*requester)
        };
        let permission = need.permission.name();
        requester.is_some_and(|requester| {
            permission.is_none_or(|permission| may_of(engine, requester, permission, &Resource::All))
        })
    }
}

fn user(engine: &Engine, name: &str) -> Option<(String, Option<String>)> {
    let stored = engine.broker.access().user(name)?;
    Some((stored.login_id(), stored.password.as_ref().map(|hash| hash.mark())))
}
