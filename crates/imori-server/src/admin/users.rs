//! `/api/users`: users, their passwords and tokens.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use serde_json::{Value, json};

use crate::access::{AccessError, Draft, User};
use crate::credentials::{Algorithm, PasswordHash, ScramKeys};
use crate::operations::users::{self, check_nkeys};
use crate::requests::administered::Administered;
use crate::requests::answer::{done, json_with, not_found};
use crate::requests::body::{Body, remove, set};
use crate::requests::list::{ListQuery, list};
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// Lists the users, with their password hashes.
pub(super) async fn users(State(broker): Broker, Query(pairs): Pairs) -> Response {
    let users: Vec<_> = broker.shared.access.objects().users.into_iter().collect();
    let name_of = |(name, _): &(String, Arc<User>)| Some(name.clone());
    list(ListQuery::read(&pairs), users, name_of, |(name, user)| Some(row(name, user))).await
}

/// Lists the users without a permission in any vhost.
pub(super) async fn without_permissions(State(broker): Broker, Query(pairs): Pairs) -> Response {
    let objects = broker.shared.access.objects();
    let users = objects.users.iter().filter(|(name, _)| objects.permissions_of(name).next().is_none());
    let users: Vec<_> = users.map(|(name, user)| (name.clone(), Arc::clone(user))).collect();
    let name_of = |(name, _): &(String, Arc<User>)| Some(name.clone());
    list(ListQuery::read(&pairs), users, name_of, |(name, user)| Some(row(name, user))).await
}

/// One user.
pub(super) async fn user(State(broker): Broker, Path(name): Path<String>) -> Response {
    match broker.shared.access.objects().users.get(&name) {
        Some(user) => json_with(StatusCode::OK, &row(&name, user)),
        None => not_found(),
    }
}

/// A user as RabbitMQ shows it.
pub(super) fn row(name: &str, user: &User) -> Value {
    let mut row = serde_json::to_value(user).unwrap_or_default();
    if let Value::Object(row) = &mut row {
        row.insert(String::from("name"), json!(name));
        // RabbitMQ's tools expect these fields even if nothing is set.
        row.entry("password_hash").or_insert_with(|| json!(""));
        row.entry("hashing_algorithm").or_insert_with(|| json!(Algorithm::Argon2id));
        row.entry("limits").or_insert_with(|| json!({}));
    }
    row
}

/// Creates or replaces a user. As in RabbitMQ, a user without password and hash cannot log in with a password.
pub(super) async fn put_user(State(broker): Broker, Path(name): Path<String>, body: Body) -> Response {
    let edit = move |draft: &mut Draft| {
        let known = draft.objects.users.get(&name).map(|user| (**user).clone()).unwrap_or_default();
        let user = read(draft, &body, known)?;
        draft.put_user(&name, user)
    };
    set(&broker, edit).await
}

/// Reads a user. Absent fields keep the values of `known`, except the password and the tags, which an absent field
/// clears.
fn read(draft: &Draft, body: &Body, known: User) -> Result<User, AccessError> {
    let vhost = body.get("vhost")?.or(known.vhost);
    let nkeys: Vec<String> = body.get("nkeys")?.unwrap_or(known.nkeys);
    check_nkeys(&nkeys)?;
    let certificate = body.get("certificate")?.or(known.certificate);
    Ok(User {
        password: password(draft, body)?,
        tags: body.words("tags")?.unwrap_or_default(),
        vhost,
        nkeys,
        certificate,
        tokens: known.tokens,
        limits: known.limits,
    })
}

fn password(draft: &Draft, body: &Body) -> Result<Option<PasswordHash>, AccessError> {
    let (password, hash) = (body.get::<String>("password")?, body.get::<String>("password_hash")?);
    match (password.filter(|text| !text.is_empty()), hash.filter(|text| !text.is_empty())) {
        (Some(password), _) => draft.hash(&password).map(Some),
        (None, Some(hash)) => {
            let algorithm = body.get("hashing_algorithm")?.unwrap_or(Algorithm::RabbitMqSha256);
            let hash = PasswordHash::imported(&hash, algorithm);
            let text = "`password_hash` is no hash of its `hashing_algorithm`; send `password` instead";
            let hash = hash.ok_or_else(|| AccessError::bad(text))?;
            let scram = body.get::<String>("scram_sha256")?.map(ScramKeys::try_from).transpose();
            Ok(Some(hash.with_scram(scram.map_err(AccessError::bad)?)))
        }
        (None, None) => Ok(None),
    }
}

/// Deletes a user and ends its connections.
pub(super) async fn delete_user(State(broker): Broker, Path(name): Path<String>) -> Response {
    remove(&broker, move |draft| draft.delete_user(&name)).await
}

/// Deletes several users, all or none. Skips users that do not exist.
pub(super) async fn delete_users(State(broker): Broker, body: Body) -> Response {
    let edit = move |draft: &mut Draft| {
        let names: Vec<String> = body.required("users")?;
        for name in &names {
            if draft.objects.users.contains_key(name) {
                draft.delete_user(name)?;
            }
        }
        Ok(())
    };
    remove(&broker, edit).await
}

/// Creates a token for a user. Only this answer shows it.
pub(super) async fn make_token(
    State(broker): Broker,
    Path(name): Path<String>,
) -> Result<Response, OperationError> {
    let token = users::make_token(&broker, name).await?;
    Ok(json_with(StatusCode::CREATED, &json!({"token": token})))
}

/// Deletes all tokens of a user.
pub(super) async fn delete_tokens(
    State(broker): Broker,
    Path(name): Path<String>,
) -> Result<Response, OperationError> {
    users::delete_tokens(&broker, name).await?;
    Ok(done())
}

/// The user of the request.
pub(super) async fn whoami(Extension(identity): Extension<Identity>) -> Response {
    let tags: Vec<&str> = identity.rights.tags().iter().map(|tag| tag.name()).collect();
    json_with(StatusCode::OK, &json!({"name": identity.user.to_string(), "tags": tags}))
}
