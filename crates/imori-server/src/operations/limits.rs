//! Limits of vhosts and users, which an operator sets while the broker runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_core::authorize::Identity;
use tracing::info;

use crate::access::{AccessError, Draft, Objects, USER_LIMITS, VHOST_LIMITS};
use crate::requests::administered::Administered;
use crate::requests::body::change;
use crate::requests::operation_error::OperationError;

/// Limits by RabbitMQ's names.
pub(crate) type Limits = BTreeMap<String, i64>;

/// The kind of object that limits are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// A vhost.
    Vhost,
    /// A user.
    User,
}

impl Limited {
    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Limited::Vhost => "vhost",
            Limited::User => "user",
        }
    }

    fn names(self) -> [&'static str; 2] {
        match self {
            Limited::Vhost => VHOST_LIMITS,
            Limited::User => USER_LIMITS,
        }
    }

    /// Gives the limits of an object that is there.
    pub(crate) fn find(self, objects: &Objects, name: &str) -> Option<Limits> {
        match self {
            Limited::Vhost => objects.vhosts.get(name).map(|facts| facts.limits.clone()),
            Limited::User => objects.users.get(name).map(|user| user.limits.clone()),
        }
    }

    /// All objects with limits, by name.
    pub(crate) fn all(self, objects: &Objects) -> Vec<(String, Limits)> {
        let names: Vec<&String> = match self {
            Limited::Vhost => objects.vhosts.keys().collect(),
            Limited::User => objects.users.keys().collect(),
        };
        names.into_iter().filter_map(|name| Some((name.clone(), self.find(objects, name)?))).collect()
    }

    /// Changes the limits of an object.
    fn change(
        self,
        draft: &mut Draft,
        name: &str,
        edit: impl FnOnce(&mut Limits),
    ) -> Result<(), AccessError> {
        let missing = || AccessError::Missing(self.word(), name.to_owned());
        match self {
            Limited::Vhost => {
                let mut facts =
                    draft.objects.vhosts.get(name).map(|facts| (**facts).clone()).ok_or_else(missing)?;
                edit(&mut facts.limits);
                draft.put_vhost(name, facts).map(drop)
            }
            Limited::User => {
                let mut user =
                    draft.objects.users.get(name).map(|user| (**user).clone()).ok_or_else(missing)?;
                edit(&mut user.limits);
                draft.put_user(name, user).map(drop)
            }
        }
    }

    fn check(self, limit: &str) -> Result<(), AccessError> {
        let [first, second] = self.names();
        if limit == first || limit == second {
            return Ok(());
        }
        let (limit, kind) = (limit.escape_debug(), self.word());
        Err(AccessError::Bad(format!("a {kind} has no limit `{limit}`; use `{first}` or `{second}`")))
    }
}

/// Sets a limit, or with `None` takes it away. It is in effect on what comes next; what is there already stays.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn set_limit(
    broker: &Arc<Administered>,
    identity: &Identity,
    of: Limited,
    (name, limit): (String, String),
    value: Option<i64>,
) -> Result<(), OperationError> {
    let (named, changed) = (name.clone(), limit.clone());
    let put = change(broker, move |draft| {
        of.check(&changed)?;
        of.change(draft, &named, |limits| match value {
            Some(value) => drop(limits.insert(changed, value)),
            None => drop(limits.remove(&changed)),
        })
    });
    put.await?;
    let kind = of.word();
    info!(kind, name = %name.escape_debug(), limit, value, by = %identity.user, "a limit is set");
    Ok(())
}

/// Sets all limits of an object, in place of those it had.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn set_limits(
    broker: &Arc<Administered>,
    identity: &Identity,
    of: Limited,
    name: String,
    limits: Limits,
) -> Result<(), OperationError> {
    let named = name.clone();
    let put = change(broker, move |draft| {
        limits.keys().try_for_each(|limit| of.check(limit))?;
        of.change(draft, &named, |known| *known = limits)
    });
    put.await?;
    info!(kind = of.word(), name = %name.escape_debug(), by = %identity.user, "limits are set");
    Ok(())
}
