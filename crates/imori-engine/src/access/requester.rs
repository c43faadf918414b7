//! The requester: the user for whom a request to the API is answered.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use imori_automation::times::Timestamp;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;

use crate::limits::REQUESTERS_MAX;

/// The user of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester {
    /// The name.
    pub name: &'static str,
    /// Whether the user needs no login, and so no role: a client of this machine while the broker has no users.
    pub(crate) is_local: bool,
    /// Whether the user may administer the broker.
    pub(crate) is_operator: bool,
    /// Whether an action or a sensor asks, by the token of its run.
    pub(crate) is_run: bool,
    /// When the access token of the user ends, if the user has logged in by one; such a user is none of the broker's,
    /// whatever the name.
    pub(crate) bearer_until: Option<Timestamp>,
}

/// The holder of a token or an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The user for whom it was made.
    pub(crate) user: String,
    /// The id of the user, if the broker stores it.
    pub(crate) user_id: Option<String>,
    /// Whether it stands for an operator.
    pub(crate) is_operator: bool,
    /// Whether it is the token of a run, which ends with the run.
    pub(crate) is_run: bool,
    /// When the access token ends by which it was made, if it was.
    pub(crate) bearer_until: Option<Timestamp>,
}

/// Whether a user may administer the broker.
pub(crate) fn may_administer(identity: &Identity) -> bool {
    authorize(identity, Action::Administer, VhostId(0), Object::Broker).is_ok()
}

tokio::task_local! {
    static REQUESTER: Requester;
}

/// Names of users that have asked something, each once. They live as long as the process.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Requester {
    /// The user of this name; `None` once too many users have asked something.
    pub fn named(name: &str) -> Option<Requester> {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = match names.get(name) {
            Some(known) => *known,
            None if names.len() < REQUESTERS_MAX => {
                let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
                names.insert(kept);
                kept
            }
            None => return None,
        };
        Some(Requester {
            name: known,
            is_local: false,
            is_operator: false,
            is_run: false,
            bearer_until: None,
        })
    }

    /// The same user with these rights.
    pub(crate) fn with_identity(self, identity: &Identity, bearer_until: Option<Timestamp>) -> Requester {
        Requester { is_operator: may_administer(identity), bearer_until, ..self }
    }

    /// The user of this holder; `None` as for [`Requester::named`].
    pub(crate) fn holding(holder: &Holder) -> Option<Requester> {
        let Holder { is_operator, is_run, bearer_until, .. } = *holder;
        let named = Requester::named(&holder.user)?;
        Some(Requester { is_operator, is_run, bearer_until, ..named })
    }

    /// A client of this machine that acts for this user without a login.
    pub(crate) fn local(name: &'static str) -> Requester {
        Requester { name, is_local: true, is_operator: true, is_run: false, bearer_until: None }
    }
}

/// The user of the request that this task answers; `None` in other tasks.
pub fn requester() -> Option<Requester> {
    REQUESTER.try_with(|requester| *requester).ok()
}

/// Answers a request for a user.
pub async fn with_requester<T>(requester: Requester, answer: impl Future<Output = T>) -> T {
    REQUESTER.scope(requester, answer).await
}
