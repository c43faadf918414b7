//! `/api/users`: who may log in.

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

/// The list of users, with the hashes of their passwords.
pub(super) async fn users(State(broker): Broker, Query(pairs): Pairs) -> Response {
    let users: Vec<_> = broker.shared.access.objects().users.into_iter().collect();
    let name_of = |(name, _): &(String, Arc<User>)| Some(name.clone());
    list(ListQuery::read(&pairs), users, name_of, |(name, user)| Some(row(name, user))).await
}

/// The list of users that may enter no vhost.
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
        // RabbitMQ's tools expect both in any case.
        row.entry("password_hash").or_insert_with(|| json!(""));
        row.entry("hashing_algorithm").or_insert_with(|| json!(Algorithm::Argon2id));
        row.entry("limits").or_insert_with(|| json!({}));
    }
    row
}

/// Makes a user, or replaces one. Without a password and a hash it cannot log in with a password, as in RabbitMQ.
pub(super) async fn put_user(State(broker): Broker, Path(name): Path<String>, body: Body) -> Response {
    let edit = move |draft: &mut Draft| {
        let known = draft.objects.users.get(&name).map(|user| (**user).clone()).unwrap_or_default();
        let user = read(draft, &body, known)?;
        draft.put_user(&name, user)
    };
    set(&broker, edit).await
}

/// Reads a user; what has no field keeps what `known` has, but for the password and the tags.
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

/// Takes a user away: its connections end.
pub(super) async fn delete_user(State(broker): Broker, Path(name): Path<String>) -> Response {
    remove(&broker, move |draft| draft.delete_user(&name)).await
}

/// Takes several users away, all or none; those that are not there are passed over.
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

/// Makes a token for a user, which is told this once.
pub(super) async fn make_token(
    State(broker): Broker,
    Path(name): Path<String>,
) -> Result<Response, OperationError> {
    let token = users::make_token(&broker, name).await?;
    Ok(json_with(StatusCode::CREATED, &json!({"token": token})))
}

/// Takes all tokens of a user away.
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
