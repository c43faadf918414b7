//! Admission to the API: clients on this machine while the broker has no users, then operators, users with a role, and
//! holders of a token or an API key. At the admin listener, its own login comes first, and decides who asks.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use axum::middleware::Next;
use axum::response::IntoResponse as _;
use imori_core::authorize::{Action, Identity, Object, authorize as may};
use imori_core::id::VhostId;
use imori_core::login::Verdict;
use imori_core::name::Name;
use imori_server::http::{Guarded, HttpLogin, guard};

use crate::access::{Requester, with_requester};
use crate::answers::ApiError;
use crate::authorization::{Refusal, authorize};
use crate::engine::Engine;

/// The paths of webhooks, below the version.
const WEBHOOKS: &str = "/webhooks/";

/// The path at which a user's password becomes a token.
const TOKENS: &str = "/tokens";

/// The path at which `st2` posts workflows as plain text.
const INSPECTION: &str = "/workflows/inspect";

/// Passes a request on, or refuses it.
pub(super) async fn admit(
    State((engine, guarded)): State<(Arc<Engine>, Arc<Guarded>)>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    if engine.waits_for_store() {
        let reason = "the automation waits for its store; send the request again later";
        return ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    }
    let path = request.uri().path().to_owned();
    // An inspection changes nothing, so that a page of another origin gains nothing by it.
    if path.ends_with(INSPECTION) {
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let webhook = path.split_once(WEBHOOKS).map(|(_, url)| url.trim_matches('/'));
    // A signature proves more than an origin and a type, and senders of forms have no other.
    if webhook.is_some_and(|url| engine.is_webhook_signed(url)) {
        return next.run(request).await;
    }
    let claim = Claim::of(&engine, &request);
    let (requester, login) = match claim.requester(&engine).await {
        Ok(admitted) => admitted,
        Err(error) => return error.into_response(),
    };
    let asked = (request.method().clone(), path);
    let request = match authorize(&engine, requester, request).await {
        Ok(request) => request,
        Err(refusal) => return ApiError::from(refusal).into_response(),
    };
    let response = with_requester(requester, guard(State(guarded), request, next)).await;
    if let Some((source, user)) = login.filter(|_| asked.0 != Method::GET && !asked.1.ends_with(TOKENS)) {
        let status = response.status().as_u16();
        engine.broker.note_http_request(source, &user, (asked.0.as_str(), &asked.1), status);
    }
    response
}

/// What a request brings to be admitted.
struct Claim {
    /// It comes from this machine, and the broker has no users.
    is_open: bool,
    /// The user whom the admin listener has logged in already.
    identity: Option<Identity>,
    credential: Option<Credential>,
    login: Option<HttpLogin>,
}

/// A text that stands for its holder.
enum Credential {
    Token(String),
    ApiKey(String),
}

impl Claim {
    fn of(engine: &Engine, request: &Request) -> Claim {
        Claim {
            is_open: engine.broker.access().admits_guest() && engine.broker.is_from_here(request),
            identity: request.extensions().get::<Identity>().cloned(),
            credential: credential(request.headers(), request.uri().query()),
            login: HttpLogin::of(&engine.broker, request),
        }
    }

    /// The user of a request; if the user logged in by a password, also the address and the name of the login.
    async fn requester(self, engine: &Engine) -> Result<(Requester, Option<(SocketAddr, Name)>), ApiError> {
        if let Some(identity) = self.identity {
            return operator_or_user(engine, &identity).map(|requester| (requester, None));
        }
        if self.is_open {
            return Ok((Requester::local(engine.system_user()), None));
        }
        let roles = engine.roles();
        let holder = match &self.credential {
            Some(Credential::Token(token)) => engine.token_holder(token).await,
            Some(Credential::ApiKey(key)) => engine.api_key_holder(key).await,
            None => None,
        };
        if let Some(holder) = holder {
            // Without roles, only operators use the automation.
            return match roles.is_enforced() || holder.is_operator {
                true => Ok((named(&holder.user)?.with_operator(holder.is_operator), None)),
                false => Err(not_an_operator(&holder.user)),
            };
        }
        let login = self.login.ok_or_else(unauthorized)?;
        let source = login.source();
        match login.decide(&engine.broker).await {
            Verdict::Granted(identity) => {
                Ok((operator_or_user(engine, &identity)?, Some((source, identity.user))))
            }
            _ => Err(unauthorized()),
        }
    }
}

/// The requester for a user who has logged in: an operator, or a user with a role.
fn operator_or_user(engine: &Engine, identity: &Identity) -> Result<Requester, ApiError> {
    let (user, is_operator) = (identity.user.to_string(), may_administer(identity));
    // A caller that runs actions runs programs on this machine.
    match is_operator || engine.roles().knows(&user) {
        true => Ok(named(&user)?.with_operator(is_operator)),
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
    Requester::named(user).ok_or_else(|| {
        let reason = "too many users have asked since the start; restart the broker";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, reason)
    })
}

fn may_administer(identity: &Identity) -> bool {
    may(identity, Action::Administer, VhostId(0), Object::Broker).is_ok()
}

fn not_an_operator(user: &str) -> ApiError {
    let reason =
        format!("user `{user}` may not use the automation; give it the tag `administrator`, or a role");
    ApiError::new(StatusCode::FORBIDDEN, reason)
}

fn unauthorized() -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized - One of Token or API key required.")
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
