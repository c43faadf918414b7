//! Endpoints of the admin listener: a method and a path, with the tag and the right that the user needs.
//!
//! The rows of `admin/routes.rs` and `v1/routes.rs` are the only table: the router is built from them, and the page on
//! rights is checked against them. The tag is checked before the handler, because a check inside one is easy to miss.
//! The right is only documented here; the handler's verb decides it, so `authorize` stays the only place that does.
//! RabbitMQ lets `monitoring` close connections; here it only sees them.

use std::fmt;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawPathParams, Request, State};
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;

use super::admin_state::AdminState;
use super::answer::Answer;

/// A method of a path, with its handler and the access it needs.
pub(crate) struct Endpoint {
    #[cfg_attr(not(test), allow(dead_code, reason = "the page on rights shows it"))]
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) login: Login,
    /// The action that the user's tags must allow.
    pub(crate) action: Action,
    #[cfg_attr(not(test), allow(dead_code, reason = "the page on rights shows it"))]
    pub(crate) right: Right,
    answers: MethodRouter<Arc<AdminState>>,
}

/// The clients that have to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// Every client.
    Needed,
    /// Clients on other machines. Prometheus on this machine reads metrics without a login, as with RabbitMQ.
    NeededFromElsewhere,
    /// No client: without a login the answer omits details (SECURITY WEB-01).
    NotNeeded,
}

/// The right that an endpoint needs besides the tag. The handler's verb or operation decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// No right.
    Nothing,
    /// The answer covers the vhosts that the user may enter.
    Shown,
    /// The answer covers the user's own connections.
    ShownOwn,
    /// A permission in the vhost.
    Vhost,
    /// The connection is the user's own, or the user is an administrator.
    EndsOwn,
    /// Configure on the queue or exchange.
    Configure,
    /// Read on the queue.
    Read,
    /// Write on the exchange, and by key.
    Write,
    /// Write on the destination, read on the source.
    Bind,
    /// Read on the queue, and write on the exchange that its messages move to.
    Move,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Right::Nothing => "none",
            Right::Shown => "shows what is in vhosts that the user may enter",
            Right::ShownOwn => "shows the user's own",
            Right::Vhost => "a permission in the vhost",
            Right::EndsOwn => "the user's own; any for `administrator`",
            Right::Configure => "configure",
            Right::Read => "read on the queue",
            Right::Write => "write on the exchange, and by key",
            Right::Bind => "write on the destination, read on the source",
            Right::Move => "read on the queue, write on the exchange that messages go to",
        })
    }
}

impl Endpoint {
    /// Creates an endpoint with this handler.
    pub(crate) fn new<H, T>(
        method: Method,
        path: &str,
        (login, action, right): (Login, Action, Right),
        handler: H,
    ) -> Endpoint
    where
        H: Handler<T, Arc<AdminState>>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("the table names methods of HTTP");
        Endpoint { method, path: path.to_owned(), login, action, right, answers: on(filter, handler) }
    }

    /// Creates an endpoint whose handler has an OpenAPI description. `answers` has this method only.
    pub(crate) fn described(
        method: Method,
        path: String,
        (login, action, right): (Login, Action, Right),
        answers: MethodRouter<Arc<AdminState>>,
    ) -> Endpoint {
        Endpoint { method, path, login, action, right, answers }
    }

    /// The handler behind the tag check.
    pub(crate) fn answers(&self, state: &Arc<AdminState>) -> MethodRouter<Arc<AdminState>> {
        let answers = self.answers.clone();
        match self.login {
            Login::NotNeeded => answers,
            Login::Needed | Login::NeededFromElsewhere => {
                answers.route_layer(from_fn_with_state((Arc::clone(state), self.action), check))
            }
        }
    }
}

/// Passes on a request whose user has a tag that allows the action.
async fn check(
    State((state, action)): State<(Arc<AdminState>, Action)>,
    Extension(identity): Extension<Identity>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    // Policies belong to a vhost, where the tag alone is not enough. The handler answers if the vhost does not exist.
    let vhost = params.iter().find(|(name, _)| *name == "vhost" && action == Action::SetPolicy);
    let (vhost, object) = match vhost.and_then(|(_, name)| state.broker.vhost(&identity, name)) {
        Some(vhost) => (vhost, Object::Vhost),
        None => (VhostId(0), Object::Broker),
    };
    match authorize(&identity, action, vhost, object) {
        Ok(()) => next.run(request).await,
        Err(_) => Answer::not_permitted().into_response(),
    }
}
