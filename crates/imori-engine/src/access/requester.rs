//! The requester: the user for whom a request to the API is answered.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

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
}

/// The holder of a token or an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The user for whom it was made.
    pub(crate) user: String,
    /// Whether it stands for an operator.
    pub(crate) is_operator: bool,
    /// Whether it is the token of a run, which ends with the run.
    pub(crate) is_run: bool,
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
        Some(Requester { name: known, is_local: false, is_operator: false, is_run: false })
    }

    /// The same user as an operator of the broker, or not.
    pub(crate) fn with_operator(self, is_operator: bool) -> Requester {
        Requester { is_operator, ..self }
    }

    /// The user of this holder; `None` as for [`Requester::named`].
    pub(crate) fn holding(holder: &Holder) -> Option<Requester> {
        let Holder { user, is_operator, is_run } = holder;
        Requester::named(user).map(|named| Requester { is_operator: *is_operator, is_run: *is_run, ..named })
    }

    /// A client of this machine that acts for this user without a login.
    pub(crate) fn local(name: &'static str) -> Requester {
        Requester { name, is_local: true, is_operator: true, is_run: false }
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
