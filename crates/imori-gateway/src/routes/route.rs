//! Routes, and what answers their requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, StatusCode};
use imori_core::message::Address;
use imori_core::route::{BindingKey, Syntax};
use regex::Regex;

use super::template::{Lookup, Template};

/// The position of a script among those of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScriptId(pub usize);

/// The text of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptSource {
    /// The file, or for an inline script the routes file with its line, as errors name it.
    pub file: String,
    /// Lines of the file above the text, which are added to the lines of its errors.
    pub line_offset: usize,
    /// The text.
    pub text: String,
}

/// Limits of a worker's VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VmLimits {
    /// Bytes of its heap.
    pub heap_bytes: usize,
    /// Bytes of one string.
    pub string_bytes: usize,
}

impl Default for VmLimits {
    fn default() -> VmLimits {
        VmLimits { heap_bytes: 64 << 20, string_bytes: 10 << 20 }
    }
}

/// Limits of the requests of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteLimits {
    /// Bytes of the body of a request.
    pub body_bytes: u64,
    pub(crate) in_flight: usize,
    /// Wall time from the head of a request to that of its response.
    pub time: Duration,
    pub(crate) cpu_slice: Duration,
    pub(crate) cpu: Duration,
    pub(crate) awaits: u32,
    pub(crate) children: u32,
}

/// What a route's path has to be.
#[derive(Debug, Clone)]
pub(crate) enum Matcher {
    /// Segments, with parameters in braces.
    Path(String),
    /// Everything below; those with `before_regex` come before regular expressions.
    Prefix {
        prefix: String,
        before_regex: bool,
    },
    Regex(Regex),
}

/// Whether a caller has to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoginRule {
    Required,
    /// Without a login, the route's user acts.
    Optional,
    /// The route's user acts, and a login is not looked at.
    None,
}

/// Variables of a route, in order.
pub(crate) type Variables = Vec<(String, Template)>;

/// A route.
#[derive(Debug)]
pub struct Route {
    pub(crate) name: String,
    /// Lower-case names; empty for all.
    pub(crate) hosts: Vec<Arc<str>>,
    pub(crate) ports: Vec<u16>,
    /// Empty for all.
    pub(crate) methods: Vec<Method>,
    /// Other origins whose pages may ask, or `*`.
    pub(crate) origins: Vec<String>,
    pub(crate) matcher: Matcher,
    /// The parameter of the path that stands for its rest.
    pub(crate) rest: Option<String>,
    pub(crate) is_internal: bool,
    pub(crate) login: LoginRule,
    /// The user who acts for callers that have not logged in.
    pub user: Option<String>,
    /// The vhost of its messages.
    pub vhost: String,
    pub limits: RouteLimits,
    pub(crate) variables: Variables,
    pub(crate) set: Vec<(String, ScriptId)>,
    pub(crate) rewrite: Option<ScriptId>,
    pub(crate) access: Option<ScriptId>,
    pub(crate) header_filter: Option<ScriptId>,
    /// The script, and whether it gets each chunk.
    pub(crate) body_filter: Option<(ScriptId, bool)>,
    pub(crate) log: Option<ScriptId>,
    pub(crate) action: Action,
    /// Requests that have no response yet, of all workers.
    pub(crate) in_flight: AtomicUsize,
    pub(crate) responses: Responses,
}

impl Route {
    /// Whether it acts as a user for callers that have not logged in, under whatever name they ask for it.
    pub(crate) fn acts_for_anybody(&self) -> bool {
        let acts = self.action.touches_messages() || self.has_scripts();
        acts && self.user.is_some() && self.login != LoginRule::Required && self.hosts.is_empty()
    }
}

/// The responses of a route so far.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// By the first digit of their status; others are at 0.
    by_class: [AtomicU64; 6],
    micros: AtomicU64,
}

impl Responses {
    /// Counts a response that came after this time.
    pub(crate) fn note(&self, status: StatusCode, time: Duration) {
        let class = self.by_class.get(usize::from(status.as_u16() / 100)).unwrap_or(&self.by_class[0]);
        class.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The responses by class, and the time of all of them.
    pub(crate) fn read(&self) -> ([u64; 6], Duration) {
        let counts = self.by_class.each_ref().map(|count| count.load(Ordering::Relaxed));
        (counts, Duration::from_micros(self.micros.load(Ordering::Relaxed)))
    }
}

impl Route {
    /// Its methods, what it matches, its action and its user, in a line.
    pub(crate) fn line(&self) -> String {
        let methods = match self.methods.is_empty() {
            true => String::from("*"),
            false => self.methods.iter().map(Method::as_str).collect::<Vec<_>>().join(","),
        };
        let matched = self.pattern();
        let user = match (self.login, &self.user) {
            (LoginRule::Required, _) => "the caller",
            (_, Some(user)) => user,
            (_, None) => "nobody",
        };
        format!("{methods} {matched} {} as {user}", self.action.name())
    }

    /// What it matches: a path, a prefix that ends in `…`, or a regular expression after `~`.
    pub(crate) fn pattern(&self) -> String {
        match &self.matcher {
            Matcher::Path(path) => path.clone(),
            Matcher::Prefix { prefix, .. } => format!("{prefix}…"),
            Matcher::Regex(regex) => format!("~ {regex}"),
        }
    }

    /// Whether a script runs for its requests.
    pub(crate) fn has_scripts(&self) -> bool {
        self.has_filters()
            || self.rewrite.is_some()
            || self.access.is_some()
            || !self.set.is_empty()
            || matches!(self.action, Action::Script(_))
    }

    /// Whether a script runs once there is a response.
    pub(crate) fn has_filters(&self) -> bool {
        self.header_filter.is_some() || self.body_filter.is_some() || self.log.is_some()
    }
}

/// What answers the requests of a route.
#[derive(Debug)]
pub(crate) enum Action {
    Script(ScriptId),
    BuiltIn(BuiltIn),
}

/// An action without a script.
#[derive(Debug)]
pub(crate) enum BuiltIn {
    Publish(PublishAction),
    Rpc(RpcAction),
    Stream(StreamAction),
    WebSocket(WebSocketAction),
    Pull(PullAction),
    Proxy(ProxyAction),
    Files(FilesAction),
    Return(ReturnAction),
}

impl Action {
    /// The key of the action in a routes file.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Action::Script(_) => "content",
            Action::BuiltIn(BuiltIn::Publish(_)) => "publish",
            Action::BuiltIn(BuiltIn::Rpc(_)) => "rpc",
            Action::BuiltIn(BuiltIn::Stream(_)) => "stream",
            Action::BuiltIn(BuiltIn::WebSocket(_)) => "websocket",
            Action::BuiltIn(BuiltIn::Pull(_)) => "pull",
            Action::BuiltIn(BuiltIn::Proxy(_)) => "proxy",
            Action::BuiltIn(BuiltIn::Files(_)) => "files",
            Action::BuiltIn(BuiltIn::Return(_)) => "return",
        }
    }

    /// Whether the action itself publishes or takes messages, which needs a user; a script may.
    pub(crate) fn touches_messages(&self) -> bool {
        match self {
            Action::Script(_) => false,
            Action::BuiltIn(action) => {
                !matches!(action, BuiltIn::Proxy(_) | BuiltIn::Files(_) | BuiltIn::Return(_))
            }
        }
    }
}

/// The address of a route's messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AddressTemplate {
    Queue(Template),
    /// A subject of the topic exchange, in NATS's syntax.
    Topic(Template),
    Exchange {
        exchange: String,
        key: Template,
    },
}

impl AddressTemplate {
    /// The address for one request; `rest` is the parameter that stands for the rest of the path. The error says which
    /// value cannot be a part of it.
    pub(crate) fn render(&self, values: &dyn Lookup, rest: Option<&str>) -> Result<Address, String> {
        let subject = self.template().render_subject(values, rest)?;
        Ok(Address::new(self.exchange(), subject.as_bytes()))
    }

    /// The key of a subscription to an address, in the syntax of its exchange.
    pub(crate) fn binding_key(&self, address: &Address) -> BindingKey {
        let syntax = match self {
            AddressTemplate::Topic(_) => Syntax::Nats,
            AddressTemplate::Queue(_) | AddressTemplate::Exchange { .. } => Syntax::Amqp,
        };
        BindingKey::new(syntax, address.subject.as_bytes())
    }

    /// The exchange's name.
    pub(crate) fn exchange(&self) -> &[u8] {
        match self {
            AddressTemplate::Queue(_) => b"",
            AddressTemplate::Topic(_) => imori_core::message::TOPIC_EXCHANGE,
            AddressTemplate::Exchange { exchange, .. } => exchange.as_bytes(),
        }
    }

    /// The subject, key or name of the queue.
    pub(crate) fn template(&self) -> &Template {
        match self {
            AddressTemplate::Queue(template)
            | AddressTemplate::Topic(template)
            | AddressTemplate::Exchange { key: template, .. } => template,
        }
    }
}

/// A request's body becomes a message.
#[derive(Debug)]
pub(crate) struct PublishAction {
    pub(crate) to: AddressTemplate,
    pub(crate) is_persistent: bool,
    pub(crate) is_mandatory: bool,
    pub(crate) priority: Option<u8>,
    pub(crate) expiration_ms: Option<u32>,
    pub(crate) headers: Vec<HeaderName>,
}

/// A request's body becomes a request by message, and the reply becomes the response.
#[derive(Debug)]
pub(crate) struct RpcAction {
    pub(crate) to: AddressTemplate,
    pub(crate) within: Duration,
    pub(crate) headers: Vec<HeaderName>,
}

/// Messages become events.
#[derive(Debug)]
pub(crate) struct StreamAction {
    pub(crate) from: AddressTemplate,
    pub(crate) history: usize,
    pub(crate) event: Option<String>,
}

/// Messages become frames, and frames messages.
#[derive(Debug)]
pub(crate) struct WebSocketAction {
    pub(crate) subscribe: Option<AddressTemplate>,
    pub(crate) publish: Option<AddressTemplate>,
    pub(crate) is_binary: bool,
}

/// Messages of a queue, one a request.
#[derive(Debug)]
pub(crate) struct PullAction {
    pub(crate) queue: AddressTemplate,
    pub(crate) wait: Duration,
    pub(crate) ack_wait: Duration,
}

/// Requests go to another server.
#[derive(Debug)]
pub(crate) struct ProxyAction {
    pub(crate) to: Template,
    pub(crate) timeout: Duration,
    pub(crate) headers: Vec<(HeaderName, Template)>,
    pub(crate) ca: Option<PathBuf>,
}

/// Files of a folder.
#[derive(Debug)]
pub(crate) struct FilesAction {
    pub(crate) root: PathBuf,
    pub(crate) is_stripped: bool,
    pub(crate) index: Vec<String>,
}

/// A response that is known.
#[derive(Debug)]
pub(crate) struct ReturnAction {
    pub(crate) status: StatusCode,
    pub(crate) location: Option<Template>,
    pub(crate) body: Option<Template>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Messages of a queue that go to a URL.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) queue: String,
    pub(crate) vhost: String,
    pub(crate) user: Option<String>,
    pub(crate) to: http::Uri,
    pub(crate) concurrency: u32,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    /// The first and the longest pause before another attempt.
    pub(crate) backoff: (Duration, Duration),
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) ca: Option<PathBuf>,
}
