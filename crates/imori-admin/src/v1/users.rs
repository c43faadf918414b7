//! `/v1/users`: users, their permissions, tokens and limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::StatusCode;
use imori_server::access::{
    AccessError, Permission as Granted, TopicPermission as GrantedKeys, User as Known,
};
use imori_server::broker::Broker;
use serde::{Deserialize, Serialize};

use crate::objects::change::change;
use crate::objects::operation_error::OperationError;
use crate::objects::whoami::Whoami;
use crate::operations::guest::{Ends, ending_guest};
use crate::operations::limits::{LimitState, Limited, Limits, set_limits};
use crate::operations::stops::{Stopped, stopping};
use crate::operations::users::{
    Deed, check_nkeys, decide, delete_tokens as revoke_tokens, make_token as new_token,
};
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// A user, without secrets.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct User {
    name: String,
    /// `administrator`, `monitoring`, `policymaker` and `management` give rights to this API.
    tags: Vec<String>,
    /// The user can log in with a password.
    has_password: bool,
    /// SASL SCRAM-SHA-256 keys of the password exist too.
    has_scram_keys: bool,
    /// Number of login tokens.
    tokens: usize,
    /// Public NATS keys.
    nkeys: Vec<String>,
    /// The name that a client certificate must have, if it is not the user's own name.
    certificate: Option<String>,
    /// The vhost of clients whose protocol names none.
    vhost: Option<String>,
    /// Limits by name, such as `max-connections` and `max-channels`.
    limits: BTreeMap<String, i64>,
    /// The user's permissions, by vhost.
    permissions: BTreeMap<String, Permission>,
}

/// A user's permission in a vhost: regular expressions that match names of queues and exchanges.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Permission {
    /// Names that the user may declare and delete.
    configure: String,
    /// Names that the user may publish to.
    write: String,
    /// Names that the user may read.
    read: String,
    /// Regular expressions that match routing keys, by topic exchange.
    #[serde(default)]
    topics: BTreeMap<String, TopicPermission>,
}

/// Regular expressions that match routing keys of a topic exchange.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct TopicPermission {
    write: String,
    read: String,
}

impl User {
    fn of(broker: &Broker, name: &str) -> Option<User> {
        let objects = broker.access().objects();
        let user = Arc::clone(objects.users.get(name)?);
        let permissions = objects.permissions_of(name).map(|(vhost, permission)| {
            let topics = objects.topic_permissions_of(name, vhost).map(|(exchange, topic)| {
                let GrantedKeys { write, read } = topic.clone();
                (exchange.clone(), TopicPermission { write, read })
            });
            let Granted { configure, write, read, .. } = (**permission).clone();
            (vhost.clone(), Permission { configure, write, read, topics: topics.collect() })
        });
        Some(User {
            name: name.to_owned(),
            tags: user.tags.clone(),
            has_password: user.password.is_some(),
            has_scram_keys: user.password.as_ref().is_some_and(|password| password.scram().is_some()),
            tokens: user.tokens.len(),
            nkeys: user.nkeys.clone(),
            certificate: user.certificate.clone(),
            vhost: user.vhost.clone(),
            limits: user.limits.clone(),
            permissions: permissions.collect(),
        })
    }
}

/// Lists the users.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/users", tag = "users",
    params(PageQuery),
    responses((status = 200, body = Page<User>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<User>> {
    let names: Vec<String> = operator.broker().access().objects().users.into_keys().collect();
    page(query, names, |name| Some(name.clone()), |name| User::of(operator.broker(), name)).await
}

/// One user.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path)),
    responses((status = 200, body = User)),
))]
pub(super) async fn show(operator: Operator, Names(user): Names<String>) -> Answered<User> {
    Ok(Answer::of(User::of(operator.broker(), &user).ok_or(OperationError::Missing("user", user))?))
}

/// The properties of a user. An absent property stays as it is.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewUser {
    /// The new password; an empty one removes the password.
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
    #[serde(default)]
    nkeys: Option<Vec<String>>,
    #[serde(default)]
    certificate: Option<String>,
    #[serde(default)]
    vhost: Option<String>,
}

/// Creates or changes a user.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path)),
    request_body = NewUser,
    responses(
        (status = 201, body = Ends, description = "it is made; a body tells what that has ended"),
        (status = 204, description = "it is changed"),
    ),
))]
pub(super) async fn put(
    operator: Operator,
    Names(user): Names<String>,
    Input(new): Input<NewUser>,
) -> Result<Answer, Problem> {
    let put = change(operator.broker(), move |draft| {
        let known = draft.objects.users.get(&user).map(|user| (**user).clone()).unwrap_or_default();
        let password = match new.password.as_deref() {
            None => known.password,
            Some("") => None,
            Some(text) => Some(draft.hash(&user, text)?),
        };
        check_nkeys(new.nkeys.as_deref().unwrap_or_default())?;
        let changed = Known {
            password,
            tags: new.tags.unwrap_or(known.tags),
            nkeys: new.nkeys.unwrap_or(known.nkeys),
            certificate: new.certificate.or(known.certificate),
            vhost: new.vhost.or(known.vhost),
            ..known
        };
        draft.put_user(&user, changed)
    });
    let (is_new, ended) = ending_guest(operator.broker(), &operator.identity, put).await?;
    Ok(ended.map_or(Answer::put(is_new), |ended| Answer::of(ended.answer()).with_status(StatusCode::CREATED)))
}

/// Tells what would end if this user were made now: the first user besides `admin` ends the login `guest`.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/users/{user}/ends", tag = "users",
    params(("user" = String, Path)),
    responses((status = 200, body = Ends)),
))]
pub(super) async fn ends(operator: Operator, Names(user): Names<String>) -> Answered<Ends> {
    Ok(Answer::of(Ends::with(operator.broker(), &user).await))
}

/// Deletes a user and ends the user's connections.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/users/{user}", tag = "users",
    params(("user" = String, Path)),
    responses(
        (status = 200, body = Stopped, description = "it is deleted, which has stopped something"),
        (status = 204, description = "it is deleted"),
    ),
))]
pub(super) async fn delete(operator: Operator, Names(user): Names<String>) -> Answered<Stopped> {
    let gone = user.clone();
    let deletion = change(operator.broker(), move |draft| draft.delete_user(&gone));
    let stopped = stopping(operator.broker(), &operator.identity, &[user], deletion).await?;
    Ok(stopped.map_or(Answer::done(), Answer::of))
}

/// A token; no later answer shows it again.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct NewToken {
    token: String,
}

/// Creates a token for a user.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/users/{user}/tokens", tag = "users",
    params(("user" = String, Path)),
    responses((status = 201, body = NewToken)),
))]
pub(super) async fn make_token(operator: Operator, Names(user): Names<String>) -> Answered<NewToken> {
    let token = new_token(operator.broker(), user).await?;
    Ok(Answer::of(NewToken { token }).with_status(StatusCode::CREATED))
}

/// Deletes all tokens of a user.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/users/{user}/tokens", tag = "users",
    params(("user" = String, Path)),
    responses((status = 204, description = "they are gone")),
))]
pub(super) async fn delete_tokens(operator: Operator, Names(user): Names<String>) -> Result<Answer, Problem> {
    revoke_tokens(operator.broker(), user).await?;
    Ok(Answer::done())
}

/// Shows the limits of a user and their current use. An unlimited rate is not counted.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/users/{user}/limits", tag = "users",
    params(("user" = String, Path)),
    responses((status = 200, body = BTreeMap<String, LimitState>)),
))]
pub(super) async fn show_limits(
    operator: Operator,
    Names(user): Names<String>,
) -> Answered<BTreeMap<String, LimitState>> {
    let states = Limited::User.states(operator.broker(), &user);
    Ok(Answer::of(states.ok_or(OperationError::Missing("user", user))?))
}

/// Replaces the limits of a user: `max-connections`, `max-channels`, `max-publish-rate` and `max-publish-byte-rate`.
/// They apply from now on, on live connections too.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/users/{user}/limits", tag = "users",
    params(("user" = String, Path)),
    request_body = BTreeMap<String, i64>,
    responses((status = 204, description = "they are set")),
))]
pub(super) async fn put_limits(
    operator: Operator,
    Names(user): Names<String>,
    Input(limits): Input<Limits>,
) -> Result<Answer, Problem> {
    set_limits(operator.broker(), &operator.identity, Limited::User, user, limits).await?;
    Ok(Answer::done())
}

/// Replaces a user's permission in a vhost.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/users/{user}/permissions/{vhost}", tag = "users",
    params(("user" = String, Path), ("vhost" = String, Path)),
    request_body = Permission,
    responses(
        (status = 201, description = "the user had none there"),
        (status = 204, description = "it is changed"),
    ),
))]
pub(super) async fn put_permission(
    operator: Operator,
    Names((user, vhost)): Names<(String, String)>,
    Input(permission): Input<Permission>,
) -> Result<Answer, Problem> {
    let is_new = change(operator.broker(), move |draft| {
        let Permission { configure, write, read, topics } = permission;
        let key = (user.clone(), vhost.clone());
        let subjects = draft.objects.permissions.get(&key).and_then(|known| known.subjects.clone());
        let is_new = draft.put_permission(&user, &vhost, Granted { configure, write, read, subjects })?;
        match draft.delete_topic_permissions(&user, &vhost, None) {
            Ok(()) | Err(AccessError::Missing(..)) => {}
            Err(error) => return Err(error),
        }
        for (exchange, TopicPermission { write, read }) in topics {
            draft.put_topic_permission((&user, &vhost, &exchange), GrantedKeys { write, read })?;
        }
        Ok(is_new)
    });
    Ok(Answer::put(is_new.await?))
}

/// Removes a user's permission in a vhost, with its topic permissions.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/users/{user}/permissions/{vhost}", tag = "users",
    params(("user" = String, Path), ("vhost" = String, Path)),
    responses((status = 204, description = "it is taken away")),
))]
pub(super) async fn delete_permission(
    operator: Operator,
    Names((user, vhost)): Names<(String, String)>,
) -> Result<Answer, Problem> {
    let taken = change(operator.broker(), move |draft| {
        draft.delete_permission(&user, &vhost)?;
        match draft.delete_topic_permissions(&user, &vhost, None) {
            Ok(()) | Err(AccessError::Missing(..)) => Ok(()),
            Err(error) => Err(error),
        }
    });
    taken.await?;
    Ok(Answer::done())
}

/// What a user would do.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct DeedQuery {
    /// `enter`, `publish`, `subscribe`, `consume`, `purge`, `declare` or `delete`.
    verb: String,
    /// The queue to consume from, to purge, to declare, to delete, or to publish to by its name.
    queue: Option<String>,
    /// The exchange to publish to, to subscribe to, to declare or to delete; `amq.topic` has the subjects of NATS.
    exchange: Option<String>,
    /// The routing key or subject to publish, or the pattern to subscribe to.
    key: Option<String>,
}

/// Whether a user may do something, and why not.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Decision {
    allowed: bool,
    /// What the client would be told.
    reason: Option<String>,
}

/// Tells whether a user may do something in a vhost, by the rights that a client gets at its next login. Nothing is done.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/users/{user}/may/{vhost}", tag = "users",
    params(("user" = String, Path), ("vhost" = String, Path), DeedQuery),
    responses((status = 200, body = Decision)),
))]
pub(super) async fn may(
    operator: Operator,
    Names((user, _vhost)): Names<(String, String)>,
    Params(query): Params<DeedQuery>,
) -> Answered<Decision> {
    let vhost = operator.in_vhost()?.vhost;
    let identity = operator.broker().access().identity_of(&user);
    let identity = identity.ok_or(OperationError::Missing("user", user))?;
    let names = (query.queue.as_deref(), query.exchange.as_deref(), query.key.as_deref());
    let refusal = decide(operator.broker(), &identity, vhost, Deed::read(&query.verb, names)?).err();
    Ok(Answer::of(Decision {
        allowed: refusal.is_none(),
        reason: refusal.map(|refusal| refusal.to_string()),
    }))
}

/// Shows the user that you are logged in as.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/whoami", tag = "users",
    responses((status = 200, body = Whoami)),
))]
pub(super) async fn whoami(operator: Operator) -> Answered<Whoami> {
    Ok(Answer::of(Whoami::of(&operator.identity)))
}
