//! `/api/vhost-limits` and `/api/user-limits`: how much a vhost or a user may have.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use serde_json::{Value, json};
use tracing::info;

use crate::access::{AccessError, Draft, Objects, USER_LIMITS, VHOST_LIMITS};
use crate::requests::administered::Administered;
use crate::requests::answer::{done, json_with, not_found};
use crate::requests::body::{Body, change};
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;
type Limits = BTreeMap<String, i64>;

/// The kind of object that limits are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Vhost,
    User,
}

impl Of {
    fn word(self) -> &'static str {
        match self {
            Of::Vhost => "vhost",
            Of::User => "user",
        }
    }

    fn names(self) -> [&'static str; 2] {
        match self {
            Of::Vhost => VHOST_LIMITS,
            Of::User => USER_LIMITS,
        }
    }

    /// Gives the limits of an object that is there.
    fn find(self, objects: &Objects, name: &str) -> Option<Limits> {
        match self {
            Of::Vhost => objects.vhosts.get(name).map(|facts| facts.limits.clone()),
            Of::User => objects.users.get(name).map(|user| user.limits.clone()),
        }
    }

    /// All objects with limits, by name.
    fn all(self, objects: &Objects) -> Vec<(String, Limits)> {
        let names: Vec<&String> = match self {
            Of::Vhost => objects.vhosts.keys().collect(),
            Of::User => objects.users.keys().collect(),
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
            Of::Vhost => {
                let mut facts =
                    draft.objects.vhosts.get(name).map(|facts| (**facts).clone()).ok_or_else(missing)?;
                edit(&mut facts.limits);
                draft.put_vhost(name, facts).map(drop)
            }
            Of::User => {
                let mut user =
                    draft.objects.users.get(name).map(|user| (**user).clone()).ok_or_else(missing)?;
                edit(&mut user.limits);
                draft.put_user(name, user).map(drop)
            }
        }
    }
}

/// The limits of all that have any.
pub(super) async fn all(of: Of, State(broker): Broker) -> Response {
    let all = of.all(&broker.shared.access.objects());
    let rows: Value = all
        .iter()
        .filter(|(_, limits)| !limits.is_empty())
        .map(|(name, limits)| row(of, name, limits))
        .collect();
    json_with(StatusCode::OK, &rows)
}

/// The limits of one, as a list of one row or none.
pub(super) async fn one(of: Of, State(broker): Broker, Path(name): Path<String>) -> Response {
    match of.find(&broker.shared.access.objects(), &name) {
        Some(limits) if limits.is_empty() => json_with(StatusCode::OK, &json!([])),
        Some(limits) => json_with(StatusCode::OK, &json!([row(of, &name, &limits)])),
        None => not_found(),
    }
}

fn row(of: Of, name: &str, limits: &Limits) -> Value {
    json!({of.word(): name, "value": limits})
}

/// Sets a limit. It is in effect on what comes next; what is there already stays.
pub(super) async fn put(
    of: Of,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((name, limit)): Path<(String, String)>,
    body: Body,
) -> Result<Response, OperationError> {
    let value: i64 = body.required("value")?;
    let shown = (name.clone(), limit.clone());
    let put = change(&broker, move |draft| {
        check(of, &limit)?;
        of.change(draft, &name, |limits| {
            limits.insert(limit, value);
        })
    });
    put.await?;
    Ok(answer(of, shown, Some(value), &identity))
}

/// Takes a limit away.
pub(super) async fn delete(
    of: Of,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((name, limit)): Path<(String, String)>,
) -> Result<Response, OperationError> {
    let shown = (name.clone(), limit.clone());
    let deleted = change(&broker, move |draft| {
        check(of, &limit)?;
        of.change(draft, &name, |limits| {
            limits.remove(&limit);
        })
    });
    deleted.await?;
    Ok(answer(of, shown, None, &identity))
}

fn check(of: Of, limit: &str) -> Result<(), AccessError> {
    let [first, second] = of.names();
    if limit == first || limit == second {
        return Ok(());
    }
    let (limit, kind) = (limit.escape_debug(), of.word());
    Err(AccessError::Bad(format!("a {kind} has no limit `{limit}`; use `{first}` or `{second}`")))
}

fn answer(of: Of, (name, limit): (String, String), value: Option<i64>, identity: &Identity) -> Response {
    let kind = of.word();
    info!(kind, name = %name.escape_debug(), limit, value, by = %identity.user, "a limit is set");
    done()
}
