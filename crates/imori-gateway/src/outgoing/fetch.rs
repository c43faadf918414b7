//! An HTTP client for scripts: HTTP/1.1 and HTTP/2, with TLS, over pooled connections of one worker.

use std::{
    error::Error,
    fmt,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::{client::legacy::Client, rt::TokioIo};
use rustls::ClientConfig;
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::{
    client::{Versions, client},
    hosts::{HostError, HostList},
};

/// Sockets that the scripts of a worker have open; more than a worker's requests need.
const SOCKETS_MAX: usize = 1024;

/// Options of a [`Fetcher`].
pub struct FetchOptions {
    /// The servers that may be connected to.
    pub hosts: Arc<HostList>,
    /// TLS with the certificates that are trusted.
    pub tls: ClientConfig,
    /// Time for one connection, with the resolution of its name.
    pub connect_timeout: Duration,
}

/// A request to another server.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// An absolute URI of `http` or `https`.
    pub uri: Uri,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Time for the whole answer.
    pub timeout: Duration,
    /// Bytes of the answer's body.
    pub answer_bytes: usize,
}

/// An answer with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// Scripts may not connect there.
    Host(HostError),
    /// There is no connection.
    Connect(String),
    /// The answer was not complete in time.
    Late(Duration),
    /// The answer's body is over so many bytes.
    TooLarge(usize),
    /// The answer is no HTTP, or ended early.
    Broken(String),
    /// The request cannot be sent.
    Request(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(error) => error.fmt(formatter),
            Self::Connect(reason) => write!(formatter, "no connection: {reason}"),
            Self::Late(time) => write!(formatter, "no answer within {} ms", time.as_millis()),
            Self::TooLarge(bytes) => write!(formatter, "the answer is over {bytes} bytes; raise its limit"),
            Self::Broken(reason) => write!(formatter, "the answer is broken: {reason}"),
            Self::Request(reason) => write!(formatter, "the request is wrong: {reason}"),
        }
    }
}

impl Error for FetchError {}

/// An HTTP client; clones share its connections. It belongs to the runtime that first uses it.
#[derive(Clone)]
pub struct Fetcher {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    hosts: Arc<HostList>,
    connect_timeout: Duration,
    sockets: Arc<Semaphore>,
}

impl Fetcher {
    /// A client without connections.
    pub fn new(options: FetchOptions) -> Self {
        let FetchOptions { hosts, tls, connect_timeout } = options;
        let connector = Connector { hosts: Arc::clone(&hosts), timeout: connect_timeout };
        let sockets = Arc::new(Semaphore::new(SOCKETS_MAX));
        Self { client: client(connector, tls, Versions::All), hosts, connect_timeout, sockets }
    }

    /// Sends a request, and reads the whole answer.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn fetch(&self, outgoing: Outgoing) -> Result<Answer, FetchError> {
        let Outgoing { method, uri, headers, body, timeout, answer_bytes } = outgoing;
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let answering = async {
            let response = self.client.request(request).await.map_err(|error| from_client(&error))?;
            let (parts, body) = response.into_parts();
            let collected = Limited::new(body, answer_bytes).collect().await;
            let body = collected.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    FetchError::TooLarge(answer_bytes)
                } else {
                    FetchError::Broken(innermost(&*error).to_string())
                }
            })?;
            Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() })
        };
        tokio::time::timeout(timeout, answering).await.unwrap_or(Err(FetchError::Late(timeout)))
    }

    /// Opens a plain connection, within the time for connections. The permit counts it as open.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, OwnedSemaphorePermit), FetchError> {
        let Ok(permit) = Arc::clone(&self.sockets).try_acquire_owned() else {
            return Err(FetchError::Connect(format!("{SOCKETS_MAX} sockets are open; close some")));
        };
        let stream = connect(&self.hosts, host, port, self.connect_timeout).await?;
        Ok((stream, permit))
    }
}

async fn connect(
    hosts: &HostList,
    host: &str,
    port: u16,
    timeout: Duration,
) -> Result<TcpStream, FetchError> {
    let connecting = async {
        let addresses = hosts.resolve(host, port).await.map_err(FetchError::Host)?;
        let stream = TcpStream::connect(addresses.as_slice()).await;
        let stream = stream.map_err(|error| FetchError::Connect(format!("`{host}:{port}`: {error}")))?;
        let _ = stream.set_nodelay(true);
        Ok(stream)
    };
    let late =
        || FetchError::Connect(format!("`{host}:{port}` did not answer within {} ms", timeout.as_millis()));
    tokio::time::timeout(timeout, connecting).await.unwrap_or_else(|_| Err(late()))
}

/// Connects to the servers of a list.
#[derive(Clone)]
struct Connector {
    hosts: Arc<HostList>,
    timeout: Duration,
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { hosts, timeout } = self.clone();
        Box::pin(async move {
            let host = uri.host().unwrap_or_default();
            let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
            let port = uri.port_u16().unwrap_or(default);
            connect(&hosts, host, port, timeout).await.map(TokioIo::new).map_err(io::Error::other)
        })
    }
}

/// Finds the cause of a client's error: one of the connector's own, or another.
fn from_client(error: &hyper_util::client::legacy::Error) -> FetchError {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(own) = error.downcast_ref::<FetchError>() {
            return own.clone();
        }
        if let Some(own) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref)
            && let Some(own) = own.downcast_ref::<FetchError>()
        {
            return own.clone();
        }
        cause = error.source();
    }
    let reason = innermost(error).to_string();
    if error.is_connect() { FetchError::Connect(reason) } else { FetchError::Broken(reason) }
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error
}
