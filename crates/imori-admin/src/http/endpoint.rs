//! Endpoints: the rows of the tables that the routers of the admin listener and of the monitor are built from.
//!
//! The page on rights and the OpenAPI document are checked against the tables. The tag is checked before the handler,
//! because a check inside one is easy to miss. The right is only documented here; the handler's verb decides it, so
//! `authorize` stays the only place that does.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};
use imori_core::authorize::Action;

/// A method of a path, with the access it needs and its handler.
pub struct Endpoint<S> {
    /// A GET row also answers HEAD.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Who has to log in.
    pub login: Login,
    /// The action that the user's tags must allow.
    pub action: Action,
    /// The right that the handler asks for.
    pub right: Right,
    handler: BoxedHandler<S>,
}

/// The clients that have to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login {
    /// Every client.
    Needed,
    /// Clients on other machines. Prometheus on this machine reads metrics without a login, as with RabbitMQ.
    NeededFromElsewhere,
    /// No client: without a login the answer omits details (SECURITY WEB-01).
    NotNeeded,
}

/// The right that an endpoint needs besides the tag. The handler's verb or operation decides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
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

/// Creates a row for users who have logged in and whose tags allow the action.
pub(crate) fn row<H, T, S>(
    method: Method,
    path: &'static str,
    action: Action,
    right: Right,
    handler: H,
) -> Endpoint<S>
where
    H: Handler<T, S, Future = Answering> + Sync,
{
    Endpoint { method, path, login: Login::Needed, action, right, handler: BoxedHandler::new(handler) }
}

impl<S: Clone + Send + Sync + 'static> Endpoint<S> {
    /// The same row for every client.
    pub(crate) fn without_login(self) -> Endpoint<S> {
        Endpoint { login: Login::NotNeeded, ..self }
    }

    /// The same row, for every client on this machine too.
    pub(crate) fn without_login_here(self) -> Endpoint<S> {
        Endpoint { login: Login::NeededFromElsewhere, ..self }
    }

    /// The handler, for this method alone.
    pub(crate) fn answers(&self) -> MethodRouter<S> {
        let filter = MethodFilter::try_from(self.method.clone()).expect("the table names methods of HTTP");
        on(filter, self.handler.clone())
    }
}

/// The router of a table whose endpoints check access by themselves.
pub(crate) fn router<S: Clone + Send + Sync + 'static>(table: &[Endpoint<S>]) -> Router<S> {
    table.iter().fold(Router::new(), |router, endpoint| router.route(endpoint.path, endpoint.answers()))
}

/// A response that is being made.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose type does not depend on what it extracts from a request, so that axum's router, which is generic
/// over handlers, is compiled once and not once a row.
struct BoxedHandler<S>(Arc<dyn Fn(Request, S) -> Answering + Send + Sync>);

impl<S> BoxedHandler<S> {
    fn new<H, T>(handler: H) -> BoxedHandler<S>
    where
        H: Handler<T, S, Future = Answering> + Sync,
    {
        BoxedHandler(Arc::new(move |request, state| handler.clone().call(request, state)))
    }
}

impl<S> Clone for BoxedHandler<S> {
    fn clone(&self) -> BoxedHandler<S> {
        BoxedHandler(Arc::clone(&self.0))
    }
}

impl<S: 'static> Handler<(), S> for BoxedHandler<S> {
    type Future = Answering;

    fn call(self, request: Request, state: S) -> Answering {
        (self.0)(request, state)
    }
}
