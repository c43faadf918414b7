//! `/api/permissions` and `/api/topic-permissions`: the permissions of users in vhosts.

use axum::extract::{Path, Query};
use axum::response::Response;
use imori_server::access::{Draft, Objects, Permission, TopicPermission};
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;
use crate::requests::answer::Answer;
use crate::requests::body::{Body, remove, set};
use crate::requests::list::{ListQuery, list};
use crate::requests::operator::Operator;

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
    operator: Operator,
    path: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Result<Response, OperationError> {
    let objects = operator.broker().access().objects();
    let filter = filter(of, &objects, path)?;
    let rows = objects.permissions.iter().filter(|((user, vhost), _)| filter(user, vhost));
    let rows: Vec<_> = rows.map(|((user, vhost), permission)| row(user, vhost, permission)).collect();
    Ok(list(ListQuery::read(&pairs), rows, user_of, |row| Some(row.clone())).await)
}

/// Lists topic permissions.
pub(super) async fn topic_permissions(
    of: Of,
    operator: Operator,
    path: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Result<Response, OperationError> {
    let objects = operator.broker().access().objects();
    let filter = filter(of, &objects, path)?;
    let rows = objects.topic_permissions.iter().filter(|((user, vhost, _), _)| filter(user, vhost));
    let rows: Vec<_> = rows.map(|(key, permission)| topic_row(key, permission)).collect();
    Ok(list(ListQuery::read(&pairs), rows, user_of, |row| Some(row.clone())).await)
}

/// Returns a predicate on user and vhost that selects the rows of this scope.
///
/// # Errors
/// The user or vhost does not exist.
fn filter(
    of: Of,
    objects: &Objects,
    path: Option<Path<String>>,
) -> Result<impl Fn(&String, &String) -> bool + use<>, OperationError> {
    let wanted = path.map(|Path(name)| name).unwrap_or_default();
    let (kind, is_there) = match of {
        Of::All => ("", true),
        Of::User => ("user", objects.users.contains_key(&wanted)),
        Of::Vhost => ("vhost", objects.vhosts.contains_key(&wanted)),
    };
    if !is_there {
        return Err(OperationError::Missing(kind, wanted));
    }
    Ok(move |user: &String, vhost: &String| match of {
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
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    let objects = operator.broker().access().objects();
    let found = objects.permissions.get(&(user.clone(), vhost.clone()));
    let found = found.map(|permission| row(&user, &vhost, permission));
    Ok(Answer::of(found.ok_or(OperationError::Missing("permission of", user))?))
}

/// Sets a user's permission in a vhost: `configure`, `write` and `read`, and optionally `subjects`, which restricts
/// subjects.
pub(super) async fn put_permission(
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let edit = move |draft: &mut Draft| {
        let permission = Permission {
            configure: body.required("configure")?,
            write: body.required("write")?,
            read: body.required("read")?,
            subjects: body.get("subjects")?,
        };
        draft.put_permission(&user, &vhost, permission)
    };
    set(operator.broker(), edit).await
}

/// Deletes a user's permission in a vhost.
pub(super) async fn delete_permission(
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    remove(operator.broker(), move |draft| draft.delete_permission(&user, &vhost)).await
}

/// The topic permissions of a user in a vhost.
pub(super) async fn topic_permissions_of(
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    let objects = operator.broker().access().objects();
    let of_user =
        objects.topic_permissions.iter().filter(|((owner, place, _), _)| *owner == user && *place == vhost);
    let rows: Vec<Value> = of_user.map(|(key, permission)| topic_row(key, permission)).collect();
    match rows.is_empty() {
        true => Err(OperationError::Missing("topic permission of", user)),
        false => Ok(Answer::of(Value::Array(rows))),
    }
}

/// Sets which routing keys of an exchange a user may publish to and read.
pub(super) async fn put_topic_permission(
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let edit = move |draft: &mut Draft| {
        let exchange: String = body.required("exchange")?;
        let permission = TopicPermission { write: body.required("write")?, read: body.required("read")? };
        draft.put_topic_permission((&user, &vhost, &exchange), permission)
    };
    set(operator.broker(), edit).await
}

/// Deletes all topic permissions of a user in a vhost.
pub(super) async fn delete_topic_permissions(
    operator: Operator,
    Path((vhost, user)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    remove(operator.broker(), move |draft| draft.delete_topic_permissions(&user, &vhost, None)).await
}
