//! Access tokens: `/auth/v1/tokens`. A token stands for its user until its end. Only its hash is stored.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_core::authorize::Identity;
use ring::digest::{SHA256, digest};

use crate::access::{Holder, may_administer, requester};
use crate::answers::{Answer, ApiError, created, no_content, object, ok};
use crate::authorization::may_everything;
use crate::engine::Engine;
use crate::limits::{
    CREDENTIAL_METADATA_BYTES_MAX, SERVICE_TOKEN_SECONDS_MAX, TOKEN_SECONDS_DEFAULT, TOKEN_SECONDS_MAX,
};
use crate::store::{TOKENS, Transaction};

type Broker = State<Arc<Engine>>;

/// The field with the id of the holder, if the broker stores the user.
const USER_ID: &str = "user_id";

/// The field with the end of the access token by which its bearer made a token.
const BEARER_UNTIL: &str = "bearer_until";

/// The field of a token with the mark of its user's password, whose change ends the token.
const PASSWORD: &str = "password_mark";

/// Makes a token for the requester, or for another user if the requester is an administrator.
pub(crate) async fn create(State(engine): Broker, body: Bytes) -> Answer {
    let body = if body.is_empty() { Map::new() } else { object(&body)? };
    let is_service = body.get("service").is_some_and(Value::is_truthy);
    let longest = if is_service { SERVICE_TOKEN_SECONDS_MAX } else { TOKEN_SECONDS_MAX };
    let seconds = body.get("ttl").and_then(Value::as_int).unwrap_or(TOKEN_SECONDS_DEFAULT);
    if seconds < 1 {
        return Err(ApiError::bad_request("TTL must be at least 1 second"));
    }
    if seconds > longest {
        let reason = format!("TTL specified {seconds} is greater than max allowed {longest}.");
        return Err(ApiError::bad_request(reason));
    }
    let holder = holder(&engine, body.get("user"), is_service)?;
    let metadata = metadata(&body)?;
    let token = random_text(32)?;
    let ends = engine.now().plus_micros(seconds.saturating_mul(1_000_000)).unwrap_or(engine.now());
    // What is made by an access token ends with it.
    let expiry = holder.bearer_until.map_or(ends, |end| end.min(ends));
    let mut document = Map::new();
    document.insert("id", hashed(&token));
    document.insert("expiry", expiry.to_string());
    document.insert("metadata", metadata);
    document.insert("service", is_service);
    document.insert(PASSWORD, password_mark(&engine, &holder));
    holder.note(&mut document);
    let mut transaction = Transaction::new();
    transaction.put(&TOKENS, document.clone());
    engine.store.commit(transaction).await?;
    hide_holder(&mut document);
    document.insert("token", token);
    created(document)
}

/// Whether a token counts.
pub(crate) async fn validate(State(engine): Broker, body: Bytes) -> Answer {
    let body = object(&body)?;
    let token = body.get("token").and_then(Value::as_str);
    let token = token.ok_or_else(|| ApiError::bad_request("'token' is a required property"))?;
    let is_valid = engine.token_holder(token).await.is_some();
    ok([("valid", is_valid)].into_iter().collect::<Map>())
}

/// Ends a token before its time, by the id that its creation returned.
pub(crate) async fn revoke(State(engine): Broker, Path(id): Path<String>) -> Answer {
    let found = engine.store.get(&TOKENS, &id).await?;
    let found = found.ok_or_else(|| ApiError::not_found("token", &id))?;
    let user = found.get("user").and_then(Value::as_str).unwrap_or_default();
    if !is_admin(&engine) && requester().is_none_or(|requester| requester.name != user) {
        return Err(ApiError::new(StatusCode::FORBIDDEN, "Administrator access required"));
    }
    let mut transaction = Transaction::new();
    transaction.delete(&TOKENS, &id);
    engine.store.commit(transaction).await?;
    engine.change_admissions();
    no_content()
}

/// Whether the requester may act for other users.
pub(crate) fn is_admin(engine: &Engine) -> bool {
    requester().is_some_and(|requester| may_everything(requester, &engine.roles()))
}

/// The user that a token or an API key stands for: the requester, unless an administrator names another.
pub(crate) fn holder(engine: &Engine, user: Option<&Value>, is_service: bool) -> Result<Holder, ApiError> {
    if requester().is_some_and(|requester| requester.is_run) {
        let reason = "an action or a sensor makes no token and no key, which would outlive its run";
        return Err(ApiError::new(StatusCode::FORBIDDEN, reason));
    }
    let own = engine.user();
    let user = user.and_then(Value::as_str).filter(|user| !user.is_empty()).unwrap_or(own);
    if (user != own || is_service) && !is_admin(engine) {
        let reason = "\"user\" and \"service\" can only be provided by admins";
        return Err(ApiError::new(StatusCode::FORBIDDEN, reason));
    }
    let is_operator = requester().is_none_or(|requester| requester.is_local || requester.is_operator);
    // Where roles decide, an operator cannot make an operator of another user.
    let bearer_until = requester().filter(|_| user == own).and_then(|requester| requester.bearer_until);
    let stored = engine.broker.access().user(user).filter(|_| bearer_until.is_none());
    Ok(Holder {
        user: user.to_owned(),
        user_id: stored.map(|stored| stored.login_id()),
        bearer_until,
        is_operator: is_operator && (user == own || !engine.roles().is_enforced()),
        is_run: false,
    })
}

impl Holder {
    /// Writes the holder into the document of a token or a key.
    pub(super) fn note(&self, document: &mut Map) {
        document.insert("user", self.user.as_str());
        document.insert(USER_ID, self.user_id.clone());
        document.insert("operator", self.is_operator);
        document.insert(BEARER_UNTIL, self.bearer_until.map(|end| end.to_string()));
    }
}

/// Removes what no answer shows of a holder.
pub(super) fn hide_holder(document: &mut Map) {
    for secret in ["operator", USER_ID, BEARER_UNTIL, PASSWORD] {
        document.remove(secret);
    }
}

/// What a client notes about a token or an API key.
pub(crate) fn metadata(body: &Map) -> Result<Map, ApiError> {
    let metadata = match body.get("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Map(metadata)) => metadata.clone(),
        Some(other) => {
            return Err(ApiError::bad_request(format!(
                "`metadata` is a JSON {}; send an object",
                other.type_name()
            )));
        }
    };
    match Value::Map(metadata.clone()).to_json().len() > CREDENTIAL_METADATA_BYTES_MAX {
        true => Err(ApiError::bad_request(format!(
            "`metadata` has at most {CREDENTIAL_METADATA_BYTES_MAX} bytes"
        ))),
        false => Ok(metadata),
    }
}

/// A random text of this many bytes before its encoding.
pub(crate) fn random_text(bytes: usize) -> Result<String, ApiError> {
    let mut random = vec![0; bytes];
    let filled = getrandom::fill(&mut random);
    filled.map_err(|error| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

impl Engine {
    /// The holder of a token; `None` if it is unknown or has ended.
    pub(crate) async fn token_holder(&self, token: &str) -> Option<Holder> {
        if let Some(holder) = self.run_token_holder(token).await {
            return Some(holder);
        }
        let document = self.store.get(&TOKENS, &hashed(token)).await.ok().flatten()?;
        let expiry = document.get("expiry")?.as_str()?.parse().ok()?;
        let holder = self.holder_of(&document)?;
        let password = document.get(PASSWORD).and_then(Value::as_str);
        let is_same = password.is_none() || password == password_mark(self, &holder).as_deref();
        (self.now() < expiry && is_same).then_some(holder)
    }

    /// The holder of a stored token or key, with the rights that its user has now; `None` if the user is gone, even if
    /// another one has the name.
    pub(crate) fn holder_of(&self, document: &Map) -> Option<Holder> {
        let user = document.get("user")?.as_str()?.to_owned();
        let was_operator = document.get("operator") != Some(&Value::Bool(false));
        let user_id = document.get(USER_ID).and_then(Value::as_str).map(str::to_owned);
        let is_operator = match &user_id {
            Some(id) => {
                let access = self.broker.access();
                access.user(&user).filter(|stored| stored.login_id() == *id)?;
                was_operator && may_administer(&access.identity_of(&user)?)
            }
            // StackStorm's services have names of which the broker knows nothing.
            None => was_operator,
        };
        let bearer_until = document.get(BEARER_UNTIL).and_then(|end| end.as_str()?.parse().ok());
        Some(Holder { user, user_id, is_operator, is_run: false, bearer_until })
    }

    /// When the access token ends that states this identity, if one does.
    pub(crate) fn bearer_until(&self, identity: &Identity) -> Option<Timestamp> {
        let left = identity.rights.valid_until()?.since(self.broker.now());
        self.now().plus_micros(i64::try_from(left.as_micros()).ok()?)
    }
}

/// What tells a user's password from those before and after it; `None` for a user without one.
fn password_mark(engine: &Engine, holder: &Holder) -> Option<String> {
    holder.user_id.as_ref()?;
    engine.broker.access().user(&holder.user)?.password.as_ref().map(|hash| hash.mark())
}

/// What is stored of a token, which its holder alone has.
fn hashed(token: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, token.as_bytes()))
}
