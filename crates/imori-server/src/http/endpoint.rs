//! Endpoints: the rows of the tables that the routers of the HTTP listeners are built from.
//!
//! A row says who may use it, so that a layer of its own route decides that before the handler runs: a check inside a
//! handler is easy to miss, and a search in the path finds what the router does not (SECURITY ROOM-01).

use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::Method;
use axum::response::Response;
use axum::routing::{MethodFilter, MethodRouter, on};

/// A method of a path, with the access it needs and its handler.
pub struct Endpoint<S, A> {
    /// A GET row also answers HEAD.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Who may use it.
    pub access: A,
    handler: BoxedHandler<S>,
}

impl<S: Clone + Send + Sync + 'static, A> Endpoint<S, A> {
    /// Creates a row.
    pub fn new<H, T>(method: Method, path: &'static str, access: A, handler: H) -> Endpoint<S, A>
    where
        H: Handler<T, S, Future = Answering> + Sync,
    {
        Endpoint { method, path, access, handler: BoxedHandler::new(handler) }
    }

    /// The handler, for this method alone.
    pub fn answers(&self) -> MethodRouter<S> {
        let filter = MethodFilter::try_from(self.method.clone()).expect("the table names methods of HTTP");
        on(filter, self.handler.clone())
    }
}

/// The router of a table whose endpoints check access by themselves.
pub fn router<S: Clone + Send + Sync + 'static, A>(table: &[Endpoint<S, A>]) -> Router<S> {
    table.iter().fold(Router::new(), |router, endpoint| router.route(endpoint.path, endpoint.answers()))
}

/// A response that is being made.
pub type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

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
