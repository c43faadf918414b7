//! The state of one request, which the gateway's actions and its scripts share.
//!
//! A [`RequestContext`] stays on its worker's thread and is shared by `Rc`, so that its parts are cells. It does no I/O: the
//! listener fills it and sends what it holds in the end. variables.rs has nginx's names for what it knows.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    net::SocketAddr,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, Method, StatusCode, Version,
    header::{CONTENT_LENGTH, LOCATION, PROXY_AUTHENTICATE, TRAILER},
};
use tokio::sync::{Notify, mpsc};

use crate::hop_by_hop::HOP_BY_HOP;

/// Bytes that scripts may put into one response; a response is in memory until its last script has ended.
pub(crate) const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// Variables of one request that scripts and routes may set; more than a configuration needs, little enough to keep.
pub const VARIABLES_MAX: usize = 256;

/// Bytes of a variable, a header or another line that a script makes; servers take less.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;

/// Events of a streamed response that wait for a slow client; the next one makes its script wait.
const STREAM_CHUNKS_MAX: usize = 16;

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A VM opens; there is no request.
    Init,
    /// A worker starts; there is no request.
    InitWorker,
    /// A worker ends; there is no request.
    ExitWorker,
    /// A client's TLS handshake; there is no request yet.
    SslHandshake,
    /// A request's header was read.
    PostRead,
    /// Before a route is looked for.
    ServerRewrite,
    /// A variable is computed.
    Set,
    /// A route was found.
    Rewrite,
    /// The route decides who may use it.
    Access,
    /// The response is made.
    Content,
    /// The response's header is about to leave.
    HeaderFilter,
    /// The response's body, or a part of it, is about to leave.
    BodyFilter,
    /// The response has left.
    Log,
}

impl Phase {
    /// The key of its scripts in a routes file.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Init => "init",
            Phase::InitWorker => "init_worker",
            Phase::ExitWorker => "exit_worker",
            Phase::SslHandshake => "ssl_handshake",
            Phase::PostRead => "post_read",
            Phase::ServerRewrite => "server_rewrite",
            Phase::Set => "set",
            Phase::Rewrite => "rewrite",
            Phase::Access => "access",
            Phase::Content => "content",
            Phase::HeaderFilter => "header_filter",
            Phase::BodyFilter => "body_filter",
            Phase::Log => "log",
        }
    }

    /// Whether scripts of the phase have a request.
    pub fn has_request(self) -> bool {
        !matches!(self, Self::Init | Self::InitWorker | Self::ExitWorker | Self::SslHandshake)
    }

    /// Whether the response is made before the phase.
    pub fn is_after_content(self) -> bool {
        matches!(self, Self::HeaderFilter | Self::BodyFilter | Self::Log)
    }

    /// Whether the phase comes before the response is made.
    fn is_before_content(self) -> bool {
        matches!(self, Self::PostRead | Self::ServerRewrite | Self::Set | Self::Rewrite | Self::Access)
    }
}

/// What the scripts of a phase have decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing: the next phase follows, as after `Nginx::OK` and `Nginx::DECLINED`.
    Continue,
    /// The response of the context is the answer.
    Respond,
    /// The route of this path, with the query of the request if it has none of its own, answers instead.
    InternalRedirect(String),
    /// The connection is closed without an answer, as after status 444.
    Close,
}

/// The request, as scripts may have changed it.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The path: decoded, normal, without the query.
    pub path: String,
    /// The query without its `?`.
    pub query: Option<String>,
    /// Path and query as the client sent them.
    pub raw_uri: String,
    /// The version of HTTP.
    pub version: Version,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, once it was read.
    pub body: Option<Bytes>,
    /// The request line, if a script has set it.
    pub line: Option<String>,
    /// Who logged in, or the user of the route.
    pub user: Option<String>,
    /// Bytes of the request on the wire, with its body.
    pub length: u64,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            method: Method::GET,
            path: "/".to_owned(),
            query: None,
            raw_uri: "/".to_owned(),
            version: Version::HTTP_11,
            headers: HeaderMap::new(),
            body: None,
            line: None,
            user: None,
            length: 0,
        }
    }
}

/// The response so far.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The status; 200 if nothing sets another.
    pub status: Option<StatusCode>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: BytesMut,
}

/// The connection that a request came on.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The client, behind trusted proxies.
    pub peer: SocketAddr,
    /// The socket's own end.
    pub local: SocketAddr,
    /// Whether the client used TLS, behind trusted proxies.
    pub is_tls: bool,
    /// A number that no other connection has.
    pub number: u64,
    /// The requests on the connection so far, this one included.
    pub requests: u64,
}

impl Default for Connection {
    fn default() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self { peer: nowhere, local: nowhere, is_tls: false, number: 0, requests: 1 }
    }
}

/// What is known of the client's TLS session, and what a script of its handshake chooses.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The server's name that the client asked for.
    pub server_name: String,
    /// The version, as `TLSv1.3`.
    pub version: String,
    /// The cipher suite.
    pub cipher: String,
    /// The certificate that a script has chosen.
    pub certificate: Option<Pem>,
    /// The private key that a script has chosen.
    pub key: Option<Pem>,
}

/// A PEM file, or its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pem {
    /// The path of the file.
    File(String),
    /// The text.
    Text(Vec<u8>),
}

/// What the scripts of one request may use. The heap is the VM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// CPU time between two operations.
    pub slice_cpu: Duration,
    /// CPU time of all scripts of one request.
    pub cpu: Duration,
    /// Time from a script's start to its end.
    pub wall_time: Duration,
    /// Operations of all scripts of one request.
    pub awaits: u32,
    /// Operations of one request at the same time.
    pub children: u32,
    /// Bytes of the answer to one outgoing request.
    pub answer_bytes: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        Self {
            slice_cpu: Duration::from_millis(50),
            cpu: Duration::from_millis(200),
            wall_time: Duration::from_secs(30),
            awaits: 1000,
            children: 64,
            answer_bytes: 10 << 20,
        }
    }
}

/// A server that a script has chosen for an upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    /// Host and port.
    pub server: Option<String>,
    /// Idle connections to keep.
    pub keepalive: Option<i64>,
}

/// One request and its response so far, with what its phases share.
#[derive(Debug)]
pub struct RequestContext {
    /// The phase whose scripts run.
    pub phase: Cell<Phase>,
    /// The request.
    pub request: RefCell<Request>,
    /// The response so far.
    pub response: RefCell<Response>,
    /// The body, or the part of it, that a body filter changes.
    pub filtered: RefCell<Bytes>,
    /// The connection.
    pub connection: Connection,
    /// The TLS session, if there is one.
    pub tls: RefCell<Tls>,
    /// The parameters of the route's path or regular expression.
    pub parameters: RefCell<Vec<(String, String)>>,
    /// The variables that the route and scripts have set.
    pub variables: RefCell<HashMap<String, String>>,
    /// The servers that scripts have chosen, by the upstream's name.
    pub upstreams: RefCell<HashMap<String, Upstream>>,
    /// The folder of the route's files, for `$document_root`.
    pub document_root: RefCell<String>,
    /// The host that the client asked for, without its port and in lower case; empty if it named none.
    pub host: String,
    /// The first name of the route's hosts.
    pub server_name: RefCell<Option<Arc<str>>>,
    id: OnceCell<String>,
    /// Whether a script of another request asked for this one.
    pub is_sub_request: bool,
    /// When the request's first byte came.
    pub started: Instant,
    /// Bytes of the response's body that were sent.
    pub body_bytes_sent: Cell<u64>,
    /// The limits of its scripts.
    pub limits: Cell<ScriptLimits>,
    /// CPU time of its scripts so far.
    pub cpu: Cell<Duration>,
    /// Operations so far.
    pub awaits: Cell<u32>,
    /// Operations at present.
    pub children: Cell<u32>,
    /// Lines that scripts have logged.
    pub log_lines: Cell<u32>,
    decision: RefCell<Option<Decision>>,
    stream: RefCell<Stream>,
    stream_started: Notify,
}

/// Whether the response is streamed by a script.
#[derive(Debug, Default)]
enum Stream {
    /// No script has pushed anything.
    #[default]
    None,
    /// The receiver waits to be taken.
    Started(mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>),
    /// The response is on its way.
    Taken(mpsc::Sender<Bytes>),
}

impl RequestContext {
    /// Creates the context of a request.
    pub fn new(request: Request, connection: Connection) -> Self {
        Self {
            phase: Cell::new(Phase::PostRead),
            request: RefCell::new(request),
            response: RefCell::default(),
            filtered: RefCell::default(),
            connection,
            tls: RefCell::default(),
            parameters: RefCell::default(),
            variables: RefCell::default(),
            upstreams: RefCell::default(),
            document_root: RefCell::default(),
            host: String::new(),
            server_name: RefCell::default(),
            id: OnceCell::new(),
            is_sub_request: false,
            started: Instant::now(),
            body_bytes_sent: Cell::new(0),
            limits: Cell::default(),
            cpu: Cell::default(),
            awaits: Cell::new(0),
            children: Cell::new(0),
            log_lines: Cell::new(0),
            decision: RefCell::default(),
            stream: RefCell::default(),
            stream_started: Notify::new(),
        }
    }

    /// Creates a context without a request, for the scripts of a worker or of a handshake.
    pub fn without_request(phase: Phase, connection: Connection) -> Rc<Self> {
        let context = Self::new(Request::default(), connection);
        context.phase.set(phase);
        Rc::new(context)
    }

    /// 32 hexadecimal digits that name the request in logs.
    pub fn id(&self) -> &str {
        self.id.get_or_init(random_id)
    }

    /// Decides the answer; the last decision of a phase holds.
    pub fn decide(&self, decision: Decision) {
        self.decision.replace(Some(decision));
    }

    /// Takes what the scripts of the phase have decided. A script that wrote a body without deciding has responded, and
    /// status 200 without a body lets the phases before the content go on.
    pub fn take_decision(&self) -> Decision {
        let decision = self.decision.take();
        let response = self.response.borrow();
        let is_plain = response.status.is_none_or(|status| status == StatusCode::OK);
        match decision {
            Some(Decision::Respond)
                if self.phase.get().is_before_content() && is_plain && response.body.is_empty() =>
            {
                Decision::Continue
            }
            Some(decision) => decision,
            None if response.body.is_empty() => Decision::Continue,
            None => Decision::Respond,
        }
    }

    /// Takes the response, but for its status, which scripts of the log see. Headers that describe the connection or the
    /// length of the body are left out, as HTTP's codec writes them.
    pub fn take_response(&self) -> http::Response<Bytes> {
        let Response { status, mut headers, body } = self.response.take();
        for name in HOP_BY_HOP.iter().chain(&[CONTENT_LENGTH, TRAILER, PROXY_AUTHENTICATE]) {
            headers.remove(name);
        }
        let mut response = http::Response::new(body.freeze());
        *response.status_mut() = status.unwrap_or_else(|| status_of(&headers));
        self.response.borrow_mut().status = Some(response.status());
        *response.headers_mut() = headers;
        response
    }

    /// The status of the response so far.
    pub fn status(&self) -> StatusCode {
        let response = self.response.borrow();
        response.status.unwrap_or_else(|| status_of(&response.headers))
    }

    /// The sender of the streamed response, which begins with the first call.
    pub fn stream(&self) -> mpsc::Sender<Bytes> {
        let mut stream = self.stream.borrow_mut();
        match &*stream {
            Stream::Started(sender, _) | Stream::Taken(sender) => sender.clone(),
            Stream::None => {
                let (sender, receiver) = mpsc::channel(STREAM_CHUNKS_MAX);
                *stream = Stream::Started(sender.clone(), receiver);
                self.stream_started.notify_one();
                sender
            }
        }
    }

    /// Waits until a script streams the response, and returns the chunks of its body. The response's header is complete
    /// then. The script goes on meanwhile, so that its run must be polled beside.
    pub async fn stream_started(&self) -> mpsc::Receiver<Bytes> {
        loop {
            if let Some(receiver) = self.take_stream() {
                return receiver;
            }
            self.stream_started.notified().await;
        }
    }

    /// Whether a script streams the response.
    pub fn is_streaming(&self) -> bool {
        !matches!(&*self.stream.borrow(), Stream::None)
    }

    /// The chunks of a streamed body, if a script has begun one and nobody took it.
    pub fn take_stream(&self) -> Option<mpsc::Receiver<Bytes>> {
        let mut stream = self.stream.borrow_mut();
        match std::mem::take(&mut *stream) {
            Stream::Started(sender, receiver) => {
                *stream = Stream::Taken(sender);
                Some(receiver)
            }
            other => {
                *stream = other;
                None
            }
        }
    }

    /// Ends the stream, so that its receiver ends once it has taken all chunks.
    pub fn end_stream(&self) {
        let mut stream = self.stream.borrow_mut();
        if let Stream::Taken(_) = &*stream {
            *stream = Stream::None;
        }
    }
}

/// The status of a response that no script has given one.
fn status_of(headers: &HeaderMap) -> StatusCode {
    if headers.contains_key(LOCATION) { StatusCode::FOUND } else { StatusCode::OK }
}

fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without a source of randomness the request has no name of its own, and is served all the same.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
