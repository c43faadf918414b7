//! What scripts need from the rest of the gateway.

use std::{collections::BTreeMap, rc::Rc, sync::Arc};

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::{HeaderMap, Method};
use imori_server::{InternalClient, InternalError};

use super::shared::SharedState;
use crate::{
    outgoing::{Answer, FetchError, Fetcher},
    request_context::RequestContext,
    timer::Timer,
};

/// Lines that the scripts of one request may log.
pub(crate) const LOG_LINES_MAX: u32 = 1000;

/// Bytes of one line that a script logs; more is cut off.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 8 << 10;

/// How urgent a line in the log is, in nginx's levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// From `LOG_STDERR` to `LOG_ERR`.
    Error,
    /// `LOG_WARN`.
    Warn,
    /// `LOG_NOTICE` and `LOG_INFO`.
    Info,
    /// `LOG_DEBUG`.
    Debug,
}

/// A request of a script to a route of the gateway.
#[derive(Clone, Debug)]
pub struct Subrequest {
    /// The method.
    pub method: Method,
    /// The path.
    pub path: String,
    /// The query without its `?`.
    pub query: Option<String>,
    /// The headers beside those of the request that the script belongs to.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What all scripts of a worker use, whatever their request is.
pub struct Tools {
    /// Values, counters and locks of all workers.
    pub shared: Arc<SharedState>,
    /// Connections to other servers.
    pub fetcher: Fetcher,
    /// Secrets by name.
    pub secrets: Arc<Secrets>,
    /// The timer for sleeps.
    pub timer: Timer,
}

/// The gateway as scripts see it.
pub trait Services {
    /// What all scripts of the worker use.
    fn tools(&self) -> &Tools;

    /// A client of the broker that acts for the user of the request.
    fn client<'a>(
        &'a self,
        context: &'a RequestContext,
    ) -> LocalBoxFuture<'a, Result<InternalClient, InternalError>>;

    /// Answers a request by another route of the gateway.
    fn subrequest<'a>(
        &'a self,
        context: &'a Rc<RequestContext>,
        request: Subrequest,
    ) -> LocalBoxFuture<'a, Result<Answer, FetchError>>;

    /// Reads the body of the request and puts it into the context. The error says why it cannot be read.
    fn read_body<'a>(&'a self, context: &'a RequestContext) -> LocalBoxFuture<'a, Result<Bytes, String>>;

    /// Writes a line of a script into the log.
    fn log(&self, context: &RequestContext, level: LogLevel, line: &str);
}

/// Secrets that scripts get by name.
#[derive(Default)]
pub struct Secrets(BTreeMap<String, String>);

impl Secrets {
    /// Secrets by name.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(secrets.into_iter().collect())
    }

    /// The secret of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The text with `***` for each secret of at least four bytes; a shorter one is in too many texts.
    pub fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in self.0.values().filter(|secret| secret.len() >= 4) {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "***");
            }
        }
        text
    }
}
