//! `/api/users`: users, their passwords and tokens.

use std::sync::Arc;

use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use imori_server::access::{AccessError, Draft, User};
use imori_server::credentials::{Algorithm, PasswordHash, ScramKeys};
use serde_json::{Value, json};

use crate::objects::change::change;
use crate::objects::operation_error::OperationError;
use crate::operations::guest::ending_guest;
use crate::operations::stops::stopping;
use crate::operations::users;
use crate::operations::users::check_nkeys;
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::list::{ListQuery, list};
use crate::requests::operator::Operator;

type Pairs = Query<Vec<(String, String)>>;

/// Lists the users, with their password hashes.
pub(super) async fn users(operator: Operator, Query(pairs): Pairs) -> Response {
    let users: Vec<_> = operator.broker().access().objects().users.into_iter().collect();
    let name_of = |(name, _): &(String, Arc<User>)| Some(name.clone());
    list(ListQuery::read(&pairs), users, name_of, |(name, user)| Some(row(name, user))).await
}

/// Lists the users without a permission in any vhost.
pub(super) async fn without_permissions(operator: Operator, Query(pairs): Pairs) -> Response {
    let objects = operator.broker().access().objects();
    let users = objects.users.iter().filter(|(name, _)| objects.permissions_of(name).next().is_none());
    let users: Vec<_> = users.map(|(name, user)| (name.clone(), Arc::clone(user))).collect();
    let name_of = |(name, _): &(String, Arc<User>)| Some(name.clone());
    list(ListQuery::read(&pairs), users, name_of, |(name, user)| Some(row(name, user))).await
}

/// One user.
pub(super) async fn user(operator: Operator, Path(name): Path<String>) -> Result<Answer, OperationError> {
    let objects = operator.broker().access().objects();
    let found = objects.users.get(&name).map(|user| row(&name, user));
    Ok(Answer::of(found.ok_or(OperationError::Missing("user", name))?))
}

/// A user as RabbitMQ shows it.
pub(super) fn row(name: &str, user: &User) -> Value {
    let mut row = serde_json::to_value(user).unwrap_or_default();
    if let Value::Object(row) = &mut row {
        // What was made for a user belongs to the user of this broker alone.
        for own in ["id", "password_mark"] {
            row.remove(own);
        }
        row.insert(String::from("name"), json!(name));
        // RabbitMQ's tools expect these fields even if nothing is set.
        row.entry("password_hash").or_insert_with(|| json!(""));
        row.entry("hashing_algorithm").or_insert_with(|| json!(Algorithm::Argon2id));
        row.entry("limits").or_insert_with(|| json!({}));
    }
    row
}

/// Creates or replaces a user, and tells if that ends the login `guest`. As in RabbitMQ, a user without password and hash
/// cannot log in with a password.
pub(super) async fn put_user(
    operator: Operator,
    Path(name): Path<String>,
    body: Body,
) -> Result<Answer, OperationError> {
    let edit = move |draft: &mut Draft| {
        let known = draft.objects.users.get(&name).map(|user| (**user).clone()).unwrap_or_default();
        let user = read(draft, (&name, known), &body)?;
        draft.put_user(&name, user)
    };
    let put = ending_guest(operator.broker(), &operator.identity, change(operator.broker(), edit));
    let (is_new, ended) = put.await?;
    Ok(ended.map_or(Answer::put(is_new), |ended| Answer::of(ended.answer()).with_status(StatusCode::CREATED)))
}

/// Reads a user. Absent fields keep the values of `known`, except the password and the tags, which an absent field
/// clears.
fn read(draft: &Draft, (name, known): (&str, User), body: &Body) -> Result<User, AccessError> {
    let vhost = body.get("vhost")?.or(known.vhost);
    let nkeys: Vec<String> = body.get("nkeys")?.unwrap_or(known.nkeys);
    check_nkeys(&nkeys)?;
    let certificate = body.get("certificate")?.or(known.certificate);
    Ok(User {
        password: password(draft, name, body)?,
        tags: body.words("tags")?.unwrap_or_default(),
        vhost,
        nkeys,
        certificate,
        ..known
    })
}

fn password(draft: &Draft, name: &str, body: &Body) -> Result<Option<PasswordHash>, AccessError> {
    let (password, hash) = (body.get::<String>("password")?, body.get::<String>("password_hash")?);
    match (password.filter(|text| !text.is_empty()), hash.filter(|text| !text.is_empty())) {
        (Some(password), _) => draft.hash(name, &password).map(Some),
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

/// Deletes a user and ends its connections; tells what that has stopped.
pub(super) async fn delete_user(
    operator: Operator,
    Path(name): Path<String>,
) -> Result<Answer, OperationError> {
    let gone = name.clone();
    let deletion = change(operator.broker(), move |draft| draft.delete_user(&gone));
    let stopped = stopping(operator.broker(), &operator.identity, &[name], deletion).await?;
    Ok(stopped.map_or(Answer::done(), |stopped| Answer::of(json!(stopped))))
}

/// Deletes several users, all or none, and ends their connections; tells what that has stopped. Skips users that do not
/// exist.
pub(super) async fn delete_users(operator: Operator, body: Body) -> Result<Answer, OperationError> {
    let names: Vec<String> = body.required("users")?;
    let gone = names.clone();
    let deletion = change(operator.broker(), move |draft| {
        let is_there = |draft: &Draft, name: &str| draft.objects.users.contains_key(name);
        gone.iter().try_for_each(|name| if is_there(draft, name) { draft.delete_user(name) } else { Ok(()) })
    });
    let stopped = stopping(operator.broker(), &operator.identity, &names, deletion).await?;
    Ok(stopped.map_or(Answer::done(), |stopped| Answer::of(json!(stopped))))
}

/// Creates a token for a user. Only this answer shows it.
pub(super) async fn make_token(
    operator: Operator,
    Path(name): Path<String>,
) -> Result<Answer, OperationError> {
    let token = users::make_token(operator.broker(), name).await?;
    Ok(Answer::of(json!({"token": token})).with_status(StatusCode::CREATED))
}

/// Deletes all tokens of a user.
pub(super) async fn delete_tokens(
    operator: Operator,
    Path(name): Path<String>,
) -> Result<Answer, OperationError> {
    users::delete_tokens(operator.broker(), name).await?;
    Ok(Answer::done())
}

/// The user of the request.
pub(super) async fn whoami(operator: Operator) -> Answer {
    let identity = operator.identity;
    let tags: Vec<&str> = identity.rights.tags().iter().map(|tag| tag.name()).collect();
    Answer::of(json!({"name": identity.user.to_string(), "tags": tags}))
}
