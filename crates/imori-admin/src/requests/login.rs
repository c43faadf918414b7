//! Logs users in to the admin listener and gives each request its user's identity.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use imori_core::authorize::{Identity, Rights, Tag};
use imori_core::login::Verdict;
use imori_core::name::Name;
use imori_server::http::{HttpLogin, RequestOrigin};

use super::admin_state::AdminState;
use super::answer::Answer;
use super::sessions::has_cookie;
use crate::http::{Access, Login as LoginNeed, Names, names_without_login};

/// The header in which browsers name the use of an answer: `document` for one that the user opens.
const SEC_FETCH_DEST: &str = "sec-fetch-dest";

/// Removes the challenge from an answer to a page that signs in by itself, for which the browser would ask its user for
/// a login.
pub(crate) async fn challenge_no_page(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_part = headers.get(SEC_FETCH_DEST).is_some_and(|used_for| used_for != "document");
    let is_of_page = is_part || has_cookie(headers) || request.uri().path() == "/v1/session";
    let mut answer = next.run(request).await;
    if is_of_page {
        answer.headers_mut().remove(WWW_AUTHENTICATE);
    }
    answer
}

/// The handlers of a path behind the login that it needs, and before the line of the audit log that it leaves.
pub(crate) fn behind_login(
    answers: MethodRouter<Arc<AdminState>>,
    access: Access,
    state: &Arc<AdminState>,
) -> MethodRouter<Arc<AdminState>> {
    answers.route_layer(from_fn_with_state((Arc::clone(state), access), log_in))
}

/// Passes a request on with its user's [`Identity`] and [`Names`] as extensions, or refuses it.
pub(crate) async fn log_in(
    State((state, access)): State<(Arc<AdminState>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_anonymous = !request.headers().contains_key(AUTHORIZATION);
    match access.login {
        LoginNeed::NotNeeded if is_anonymous => return next.run(request).await,
        LoginNeed::NeededFromElsewhere if is_anonymous && state.broker.is_from_here(&request) => {
            let names = names_without_login(&state.broker, &request);
            request.extensions_mut().insert(names);
            request.extensions_mut().insert(scraper());
            return next.run(request).await;
        }
        LoginNeed::Needed | LoginNeed::NeededFromElsewhere | LoginNeed::NotNeeded => {}
    }
    let origin = RequestOrigin::of(request.extensions());
    let verdict = if is_anonymous {
        match state.sessions.of_request(&state.broker, request.headers(), &origin) {
            Some((session, identity)) => {
                request.extensions_mut().insert(session);
                Verdict::Granted(identity)
            }
            None => Verdict::Refused,
        }
    } else {
        match HttpLogin::of(&state.broker, &request) {
            Some(login) => login.decide(&state.broker).await,
            None => Verdict::Refused,
        }
    };
    request.extensions_mut().insert(Names(true));
    match verdict {
        Verdict::Granted(identity) => {
            let user = identity.user.clone();
            request.extensions_mut().insert(identity);
            let asked = (request.method().clone(), request.uri().path().to_owned());
            let response = next.run(request).await;
            let status = response.status();
            if access.is_change || status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
                let asked = (asked.0.as_str(), asked.1.as_str());
                state.broker.note_http_request(origin.source, &user, asked, status.as_u16());
            }
            response
        }
        Verdict::Refused => Answer::not_authorized().into_response(),
        Verdict::Busy => Answer::busy().into_response(),
    }
}

/// The identity of a client on this machine that reads metrics without a login; it may do nothing else.
fn scraper() -> Identity {
    let user = Name::from("");
    let rights = Rights::new(&user, [Tag::Monitoring].into_iter().collect(), []);
    rights.map_or_else(|_| Identity::nobody(), |rights| Identity { user, rights: Arc::new(rights) })
}
