//! `/v1/session`: signs a user of the web console in and out.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::header::SET_COOKIE;
use axum::http::{Extensions, HeaderMap, StatusCode};
use imori_core::authorize::{Action, Object, authorize};
use imori_core::id::VhostId;
use imori_core::login::Verdict;
use imori_server::access::Standing;
use imori_server::http::{HttpLogin, RequestOrigin};
use serde::Deserialize;

use crate::limits::SIGN_IN_CHECKS_MAX;
use crate::objects::whoami::Whoami;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input};
use crate::requests::problem::Problem;
use crate::requests::sessions::SessionCookie;

/// A user's name and password.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    user: String,
    password: String,
}

/// Begins a session: answers with the cookie `imori_session`, which stands for the login until the session ends. A
/// session ends after 12 hours, after an hour without a request, with its user, or with a change of the password.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/session", tag = "users",
    security(()),
    request_body = SignIn,
    responses((status = 200, body = Whoami)),
))]
pub(crate) async fn sign_in(
    State(state): State<Arc<AdminState>>,
    extensions: Extensions,
    Input(SignIn { user, password }): Input<SignIn>,
) -> Answered<Whoami> {
    let (broker, origin) = (&state.broker, RequestOrigin::of(&extensions));
    let refused = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "the user or the password is wrong, or too many were wrong before",
        )
    };
    // The user may change between the check and what the session remembers of it, as a first login does that renews
    // an old hash.
    for _ in 0..SIGN_IN_CHECKS_MAX {
        let identity = match HttpLogin::by_password(broker, &origin, &user, &password).decide(broker).await {
            Verdict::Granted(identity) => identity,
            Verdict::Refused => return Err(refused()),
            Verdict::Busy => {
                let text = "too many logins at once; try again in a moment";
                return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text));
            }
        };
        if authorize(&identity, Action::Manage, VhostId(0), Object::Broker).is_err() {
            let text = "the tags of your user do not allow it; ask an administrator";
            return Err(Problem::new(StatusCode::FORBIDDEN, text));
        }
        let Some(standing) = Standing::of(broker.access(), &identity, &password) else { continue };
        let Some(cookie) = SessionCookie::new(origin.is_encrypted) else {
            let text = "the system has no random bytes for a session; log in with each request";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text));
        };
        let login = (identity.user.to_string(), standing);
        state.sessions.begin(cookie.key, login, origin.is_local(broker), Instant::now());
        return Ok(Answer::of(Whoami::of(&identity)).with_header(SET_COOKIE, cookie.header));
    }
    Err(refused())
}

/// Ends the session of the request's cookie, and removes the cookie.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/session", tag = "users",
    security(()),
    responses((status = 204, description = "it has ended, or there was none")),
))]
pub(crate) async fn sign_out(
    State(state): State<Arc<AdminState>>,
    extensions: Extensions,
    headers: HeaderMap,
) -> Answer {
    state.sessions.end_all(&headers);
    let removal = SessionCookie::removal(RequestOrigin::of(&extensions).is_encrypted);
    removal.into_iter().fold(Answer::done(), |answer, removal| answer.with_header(SET_COOKIE, removal))
}
