//! Limits of vhosts and users, which an operator sets while the broker runs.

use std::collections::BTreeMap;

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_server::access::{AccessError, BYTE_RATE, Draft, Objects, RATE, USER_LIMITS, VHOST_LIMITS};
use imori_server::broker::{Broker, Usage};
use serde::Serialize;
use tracing::info;

use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

/// Limits by RabbitMQ's names.
pub(crate) type Limits = BTreeMap<String, i64>;

/// The kind of object that has limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// A vhost.
    Vhost,
    /// A user.
    User,
}

impl Limited {
    /// The kind's name in messages and logs.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Limited::Vhost => "vhost",
            Limited::User => "user",
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Limited::Vhost => &VHOST_LIMITS,
            Limited::User => &USER_LIMITS,
        }
    }

    /// The limits of an object; `None` if there is no such object.
    pub(crate) fn find(self, objects: &Objects, name: &str) -> Option<Limits> {
        match self {
            Limited::Vhost => objects.vhosts.get(name).map(|facts| facts.limits.clone()),
            Limited::User => objects.users.get(name).map(|user| user.limits.clone()),
        }
    }

    /// All objects of this kind with their limits, by name.
    pub(crate) fn all(self, objects: &Objects) -> Vec<(String, Limits)> {
        let names: Vec<&String> = match self {
            Limited::Vhost => objects.vhosts.keys().collect(),
            Limited::User => objects.users.keys().collect(),
        };
        names.into_iter().filter_map(|name| Some((name.clone(), self.find(objects, name)?))).collect()
    }

    /// Edits the limits of an object in the draft.
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

    fn check(self, limit: &str, value: Option<i64>) -> Result<(), AccessError> {
        if [RATE, BYTE_RATE].contains(&limit) && value == Some(0) {
            return Err(AccessError::Bad(format!(
                "`{limit}` of `0` would have each message wait for ever; use 1 or more, or -1 for no limit, or take the \
                 right to write away"
            )));
        }
        if self.names().contains(&limit) {
            return Ok(());
        }
        let (limit, kind, names) = (limit.escape_debug(), self.word(), self.names().join("`, `"));
        Err(AccessError::Bad(format!("a {kind} has no limit `{limit}`; use one of `{names}`")))
    }
}

/// A limit and how much there is of what it limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct LimitState {
    /// How much there may be; absent where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<i64>,
    /// How much there is; absent for a rate without a limit, which is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
}

impl Limited {
    /// The usage of an object's limits; `None` if there is no such object.
    pub(crate) fn used(self, broker: &Broker, name: &str) -> Option<Usage> {
        let objects = broker.access().objects();
        match self {
            Limited::Vhost => Some(broker.usage_of_vhost(VhostId(objects.vhosts.get(name)?.id))),
            Limited::User => {
                objects.users.contains_key(name).then(|| broker.usage_of_user(&Name::from(name)))
            }
        }
    }

    /// Every limit of the object's kind with its usage; `None` if there is no such object.
    pub(crate) fn states(self, broker: &Broker, name: &str) -> Option<BTreeMap<String, LimitState>> {
        let limits = self.find(&broker.access().objects(), name)?;
        let used = self.used(broker, name)?;
        let state = |limit: &&str| {
            let max = limits.get(*limit).copied().filter(|max| *max >= 0);
            ((*limit).to_owned(), LimitState { max, used: used.get(limit).copied() })
        };
        Some(self.names().iter().map(state).collect())
    }
}

/// Sets a limit; `None` removes it. Live connections obey it at once, but nothing that already exceeds it is removed.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn set_limit(
    broker: &Broker,
    identity: &Identity,
    of: Limited,
    (name, limit): (String, String),
    value: Option<i64>,
) -> Result<(), OperationError> {
    let (named, changed) = (name.clone(), limit.clone());
    let put = change(broker, move |draft| {
        of.check(&changed, value)?;
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

/// Replaces all limits of an object.
///
/// # Errors
/// [`OperationError`].
pub(crate) async fn set_limits(
    broker: &Broker,
    identity: &Identity,
    of: Limited,
    name: String,
    limits: Limits,
) -> Result<(), OperationError> {
    let named = name.clone();
    let put = change(broker, move |draft| {
        limits.iter().try_for_each(|(limit, value)| of.check(limit, Some(*value)))?;
        of.change(draft, &named, |known| *known = limits)
    });
    put.await?;
    info!(kind = of.word(), name = %name.escape_debug(), by = %identity.user, "limits are set");
    Ok(())
}
