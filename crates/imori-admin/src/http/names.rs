//! Which responses may contain names of queues, vhosts, users and clients.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::WWW_AUTHENTICATE;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use imori_core::login::Verdict;
use imori_server::broker::Broker;
use imori_server::config::NamesShown;
use imori_server::http::HttpLogin;

/// Whether a response may contain names of queues, vhosts, users and clients. Stored in the request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) bool);

/// Decides whether a response of the monitor may contain names: `monitor.names` allows it, or the user may monitor.
/// Refuses requests with a wrong login.
pub(crate) async fn note_names(State(broker): State<Broker>, mut request: Request, next: Next) -> Response {
    let Names(are_open) = names_without_login(&broker, &request);
    let names = match HttpLogin::of(&broker, &request) {
        Some(login) => match login.decide(&broker).await {
            Verdict::Granted(user) => Names(are_open || may_monitor(&user)),
            Verdict::Refused => {
                let asks = (WWW_AUTHENTICATE, "Basic realm=\"imori\"");
                return (StatusCode::UNAUTHORIZED, [asks]).into_response();
            }
            Verdict::Busy => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        },
        None => Names(are_open),
    };
    request.extensions_mut().insert(names);
    next.run(request).await
}

/// Whether a user may monitor the whole broker.
pub(crate) fn may_monitor(identity: &Identity) -> bool {
    authorize(identity, Action::Monitor, VhostId(0), Object::Broker).is_ok()
}

/// Whether the response to a request without a login may contain names.
pub(crate) fn names_without_login(broker: &Broker, request: &Request) -> Names {
    Names(match broker.settings().config().monitor.names {
        NamesShown::Loopback => broker.is_from_here(request),
        NamesShown::Login => false,
        NamesShown::All => true,
    })
}
