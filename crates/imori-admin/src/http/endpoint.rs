//! The rows of the tables that the routers of the admin listener and of the monitor are built from.
//!
//! The page on rights and the OpenAPI document are checked against the tables. The tag is checked before the handler.
//! The right is only documented here; the handler's verb decides it, so `authorize` stays the only place that does.

use std::fmt;

use axum::handler::Handler;
use axum::http::Method;
use imori_core::authorize::Action;
use imori_server::http::{Answering, Endpoint as Row};

use crate::limits::ADMIN_BODY_BYTES_MAX;

/// A row of the tables.
pub type Endpoint<S> = Row<S, Access>;

/// Who may use an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Who has to log in.
    pub login: Login,
    /// The action that the user's tags must allow.
    pub action: Action,
    /// The right that the handler asks for.
    pub right: Right,
    /// The most bytes of a body.
    pub body_bytes_max: u64,
    /// Whether each request leaves a line in the audit log, and not only a refused one.
    pub is_change: bool,
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
    S: Clone + Send + Sync + 'static,
{
    let is_change = !method.is_safe();
    let access =
        Access { login: Login::Needed, action, right, body_bytes_max: ADMIN_BODY_BYTES_MAX, is_change };
    Row::new(method, path, access, handler)
}

/// The same row for every client.
pub(crate) fn without_login<S>(mut endpoint: Endpoint<S>) -> Endpoint<S> {
    endpoint.access.login = Login::NotNeeded;
    endpoint
}

/// The same row, for every client on this machine too.
pub(crate) fn without_login_here<S>(mut endpoint: Endpoint<S>) -> Endpoint<S> {
    endpoint.access.login = Login::NeededFromElsewhere;
    endpoint
}
