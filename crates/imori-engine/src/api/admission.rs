//! Admission to the API: operators, users with a role, and holders of a token or an API key. At the admin listener, its
//! own login comes first, and decides who asks. Where the configuration opens the automation, clients on this machine need
//! no login.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use imori_core::authorize::Identity;
use imori_core::login::Verdict;
use imori_core::name::Name;
use imori_server::http::{Guarded, HttpLogin, RequestOrigin, guard};

use crate::access::{Holder, Login, Need, Requester, with_requester};
use crate::answers::ApiError;
use crate::authorization::{Refusal, authorize};
use crate::engine::Engine;

/// The user in the audit log of a request that its signature alone has admitted.
const SIGNER: &str = "(signature)";

/// What stands before the handler of a row.
#[derive(Clone)]
pub(super) struct Entrance {
    engine: Arc<Engine>,
    guarded: Arc<Guarded>,
    need: Need,
}

impl Entrance {
    pub(super) fn new(engine: &Arc<Engine>, guarded: &Arc<Guarded>, need: Need) -> Entrance {
        Entrance { engine: Arc::clone(engine), guarded: guarded.with_body(need.body_bytes_max as u64), need }
    }
}

/// Passes a request on, or refuses it. The row decides, never the text of the path (SECURITY ROOM-01).
pub(super) async fn admit(
    State(Entrance { engine, guarded, need }): State<Entrance>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    if let Some(reason) = engine.is_away().filter(|_| !need.is_for_recovery) {
        return ApiError::unavailable(format!("{reason}; send the request again later")).into_response();
    }
    if engine.broker.access().awaits_recovery() {
        let reason = "users were lost with the definitions; an operator has to recover them first";
        return ApiError::unavailable(reason).into_response();
    }
    if need.takes_text {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let source = RequestOrigin::of(request.extensions()).source;
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_signed = need.login == Login::OrSignature
        && params.iter().next().is_some_and(|(_, url)| engine.is_webhook_signed(url.trim_matches('/')));
    let claim = Claim::of(&engine, need.login, &request);
    let credential = claim.credential.clone();
    let (user, response) = match claim.requester(&engine).await {
        Ok(requester) => {
            request.extensions_mut().insert(Admitted { requester, credential, need });
            let response = match authorize(&engine, requester, need, &params, request).await {
                Ok(request) => with_requester(requester, guard(State(guarded), request, next)).await,
                Err(refusal) => ApiError::from(refusal).into_response(),
            };
            (requester.name, response)
        }
        // A signature proves more than an origin and a type, and senders of forms have no other.
        Err(_) if is_signed => (SIGNER, next.run(request).await),
        Err(error) => return error.into_response(),
    };
    let status = response.status();
    if need.is_change || status == StatusCode::FORBIDDEN {
        let asked = (method.as_str(), path.as_str());
        engine.broker.note_http_request(source, &Name::from(user), asked, status.as_u16());
    }
    response
}

/// What a request brings to be admitted.
struct Claim {
    /// It comes from this machine, and the configuration opens the automation.
    is_open: bool,
    /// The user whom the admin listener has logged in already.
    identity: Option<Identity>,
    credential: Option<Credential>,
    login: Option<HttpLogin>,
}

/// What a request was admitted by, in its extensions.
#[derive(Clone)]
pub(super) struct Admitted {
    pub(super) requester: Requester,
    pub(super) credential: Option<Credential>,
    pub(super) need: Need,
}

/// A text that stands for its holder.
#[derive(Clone)]
pub(super) enum Credential {
    Token(String),
    ApiKey(String),
}

impl Credential {
    /// The holder; `None` if it does not count.
    pub(super) async fn holder(&self, engine: &Engine) -> Option<Holder> {
        match self {
            Credential::Token(token) => engine.token_holder(token).await,
            Credential::ApiKey(key) => engine.api_key_holder(key).await,
        }
    }
}

impl Claim {
    fn of(engine: &Engine, need: Login, request: &Request) -> Claim {
        let login = HttpLogin::of(&engine.broker, request);
        let is_alone = need == Login::Password && login.is_some();
        let credential = credential(request.headers(), request.uri().query());
        let credential = credential.filter(|_| !is_alone && need != Login::PasswordOnly);
        Claim {
            is_open: engine.is_open() && !is_alone && engine.broker.is_from_here(request),
            identity: request.extensions().get::<Identity>().cloned(),
            credential,
            login,
        }
    }

    /// The user of a request.
    async fn requester(self, engine: &Engine) -> Result<Requester, ApiError> {
        if let Some(identity) = self.identity {
            return operator_or_user(engine, &identity);
        }
        if self.is_open {
            return Ok(Requester::local(engine.system_user()));
        }
        let holder = match &self.credential {
            Some(credential) => credential.holder(engine).await,
            None => None,
        };
        if let Some(holder) = holder {
            return requester_of(engine, &holder);
        }
        let login = self.login.ok_or_else(ApiError::unauthorized)?;
        match login.decide(&engine.broker).await {
            Verdict::Granted(identity) => operator_or_user(engine, &identity),
            _ => Err(ApiError::unauthorized()),
        }
    }
}

/// The requester for the holder of a token or an API key. Without roles, only operators use the automation.
pub(super) fn requester_of(engine: &Engine, holder: &Holder) -> Result<Requester, ApiError> {
    match engine.roles().is_enforced() || holder.is_operator {
        true => Requester::holding(holder).ok_or_else(too_many),
        false => Err(not_an_operator(&holder.user)),
    }
}

/// The requester for a user who has logged in: an operator, or a user with a role.
pub(super) fn operator_or_user(engine: &Engine, identity: &Identity) -> Result<Requester, ApiError> {
    let user = identity.user.to_string();
    let requester = named(&user)?.with_identity(identity, engine.bearer_until(identity));
    // A caller that runs actions runs programs on this machine.
    match requester.is_operator || engine.roles().knows(&user) {
        true => Ok(requester),
        false => Err(not_an_operator(&user)),
    }
}

fn credential(headers: &HeaderMap, query: Option<&str>) -> Option<Credential> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let parameter = |name: &str| {
        let pairs = query.unwrap_or_default().split('&');
        pairs.filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    if let Some(token) = header("x-auth-token").or_else(|| parameter("x-auth-token")) {
        return Some(Credential::Token(token.to_owned()));
    }
    let key = header("st2-api-key").or_else(|| parameter("st2-api-key"))?;
    Some(Credential::ApiKey(key.to_owned()))
}

fn named(user: &str) -> Result<Requester, ApiError> {
    Requester::named(user).ok_or_else(too_many)
}

fn too_many() -> ApiError {
    let reason = "too many users have asked since the start; restart the broker";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

fn not_an_operator(user: &str) -> ApiError {
    let reason =
        format!("user `{user}` may not use the automation; give it the tag `administrator`, or a role");
    ApiError::new(StatusCode::FORBIDDEN, reason)
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> ApiError {
        match refusal {
            Refusal::Forbidden(reason) => ApiError::new(StatusCode::FORBIDDEN, reason),
            Refusal::TooLong(reason) => ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason),
            Refusal::Store(error) => error.into(),
        }
    }
}
