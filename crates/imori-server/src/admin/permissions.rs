//! `/api/permissions` and `/api/topic-permissions`: the permissions of users in vhosts.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use crate::access::{Draft, Objects, Permission, TopicPermission};
use crate::requests::administered::Administered;
use crate::requests::answer::{json_with, not_found};
use crate::requests::body::{Body, remove, set};
use crate::requests::list::{ListQuery, list};

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// The scope of a list of permissions.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of {
    /// All permissions.
    All,
    /// The permissions of one user.
    User,
    /// The permissions in one vhost.
    Vhost,
}

/// Lists permissions.
pub(super) async fn permissions(
    of: Of,
    State(broker): Broker,
    path: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Response {
    let objects = broker.shared.access.objects();
    let Some(filter) = filter(of, &objects, path) else { return not_found() };
    let rows = objects.permissions.iter().filter(|((user, vhost), _)| filter(user, vhost));
    let rows: Vec<_> = rows.map(|((user, vhost), permission)| row(user, vhost, permission)).collect();
    list(ListQuery::read(&pairs), rows, user_of, |row| Some(row.clone())).await
}

/// Lists topic permissions.
pub(super) async fn topic_permissions(
    of: Of,
    State(broker): Broker,
    path: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Response {
    let objects = broker.shared.access.objects();
    let Some(filter) = filter(of, &objects, path) else { return not_found() };
    let rows = objects.topic_permissions.iter().filter(|((user, vhost, _), _)| filter(user, vhost));
    let rows: Vec<_> = rows.map(|(key, permission)| topic_row(key, permission)).collect();
    list(ListQuery::read(&pairs), rows, user_of, |row| Some(row.clone())).await
}

/// Returns a predicate on user and vhost that selects the rows of this scope; `None` if the user or vhost does not
/// exist.
fn filter(
    of: Of,
    objects: &Objects,
    path: Option<Path<String>>,
) -> Option<impl Fn(&String, &String) -> bool + use<>> {
    let wanted = path.map(|Path(name)| name).unwrap_or_default();
    let is_there = match of {
        Of::All => true,
        Of::User => objects.users.contains_key(&wanted),
        Of::Vhost => objects.vhosts.contains_key(&wanted),
    };
    is_there.then_some(move |user: &String, vhost: &String| match of {
        Of::All => true,
        Of::User => *user == wanted,
        Of::Vhost => *vhost == wanted,
    })
}

fn user_of(row: &Value) -> Option<String> {
    row["user"].as_str().map(str::to_owned)
}

/// A permission as RabbitMQ shows it.
pub(super) fn row(user: &str, vhost: &str, permission: &Permission) -> Value {
    let mut row = serde_json::to_value(permission).unwrap_or_default();
    if let Value::Object(row) = &mut row {
        row.insert(String::from("user"), json!(user));
        row.insert(String::from("vhost"), json!(vhost));
    }
    row
}

/// A topic permission as RabbitMQ shows it.
pub(super) fn topic_row(
    (user, vhost, exchange): &(String, String, String),
    permission: &TopicPermission,
) -> Value {
    let TopicPermission { write, read } = permission;
    json!({"user": user, "vhost": vhost, "exchange": exchange, "write": write, "read": read})
}

/// The permission of a user in a vhost.
pub(super) async fn permission(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
) -> Response {
    match broker.shared.access.objects().permissions.get(&(user.clone(), vhost.clone())) {
        Some(permission) => json_with(StatusCode::OK, &row(&user, &vhost, permission)),
        None => not_found(),
    }
}

/// Sets a user's permission in a vhost: `configure`, `write` and `read`, and optionally `subjects`, which restricts
/// subjects.
pub(super) async fn put_permission(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
    body: Body,
) -> Response {
    let edit = move |draft: &mut Draft| {
        let permission = Permission {
            configure: body.required("configure")?,
            write: body.required("write")?,
            read: body.required("read")?,
            subjects: body.get("subjects")?,
        };
        draft.put_permission(&user, &vhost, permission)
    };
    set(&broker, edit).await
}

/// Deletes a user's permission in a vhost.
pub(super) async fn delete_permission(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
) -> Response {
    remove(&broker, move |draft| draft.delete_permission(&user, &vhost)).await
}

/// The topic permissions of a user in a vhost.
pub(super) async fn topic_permissions_of(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
) -> Response {
    let objects = broker.shared.access.objects();
    let of_user =
        objects.topic_permissions.iter().filter(|((owner, place, _), _)| *owner == user && *place == vhost);
    let rows: Vec<Value> = of_user.map(|(key, permission)| topic_row(key, permission)).collect();
    if rows.is_empty() { not_found() } else { json_with(StatusCode::OK, &Value::Array(rows)) }
}

/// Sets which routing keys of an exchange a user may publish to and read.
pub(super) async fn put_topic_permission(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
    body: Body,
) -> Response {
    let edit = move |draft: &mut Draft| {
        let exchange: String = body.required("exchange")?;
        let permission = TopicPermission { write: body.required("write")?, read: body.required("read")? };
        draft.put_topic_permission((&user, &vhost, &exchange), permission)
    };
    set(&broker, edit).await
}

/// Deletes all topic permissions of a user in a vhost.
pub(super) async fn delete_topic_permissions(
    State(broker): Broker,
    Path((vhost, user)): Path<(String, String)>,
) -> Response {
    remove(&broker, move |draft| draft.delete_topic_permissions(&user, &vhost, None)).await
}
