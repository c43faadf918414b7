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
pub(crate) struct FetchOptions {
    /// The servers that may be connected to.
    pub(crate) hosts: Arc<HostList>,
    /// TLS with the certificates that are trusted.
    pub(crate) tls: ClientConfig,
    /// Time for one connection, with the resolution of its name.
    pub(crate) connect_timeout: Duration,
}

/// A request to another server.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// The method.
    pub(crate) method: Method,
    /// An absolute URI of `http` or `https`.
    pub(crate) uri: Uri,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
    /// Time for the whole answer.
    pub(crate) timeout: Duration,
    /// Bytes of the answer's body.
    pub(crate) answer_bytes: usize,
}

/// An answer with its whole body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FetchError {
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
pub(crate) struct Fetcher {
    client: Client<HttpsConnector<Connector>, Full<Bytes>>,
    hosts: Arc<HostList>,
    connect_timeout: Duration,
    sockets: Arc<Semaphore>,
}

impl Fetcher {
    /// A client without connections.
    pub(crate) fn new(options: FetchOptions) -> Self {
        let FetchOptions { hosts, tls, connect_timeout } = options;
        let connector = Connector { hosts: Arc::clone(&hosts), timeout: connect_timeout };
        let sockets = Arc::new(Semaphore::new(SOCKETS_MAX));
        Self { client: client(connector, tls, Versions::All), hosts, connect_timeout, sockets }
    }

    /// Sends a request, and reads the whole answer.
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) async fn fetch(&self, outgoing: Outgoing) -> Result<Answer, FetchError> {
        let Outgoing { method, uri, headers, body, timeout, answer_bytes } = outgoing;
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let exchange = async {
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
        tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(FetchError::Late(timeout)))
    }

    /// Opens a plain connection, within the time for connections. The permit counts it as open.
    ///
    /// # Errors
    /// [`FetchError`].
    pub(crate) async fn connect(
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

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn fetcher(hosts: &[&str]) -> Fetcher {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty());
        Fetcher::new(FetchOptions {
            hosts: Arc::new(HostList::parse(hosts.iter().copied()).expect("the entries are right")),
            tls: tls.with_no_client_auth(),
            connect_timeout: Duration::from_secs(2),
        })
    }

    fn outgoing(port: u16) -> Outgoing {
        Outgoing {
            method: Method::GET,
            uri: format!("http://127.0.0.1:{port}/x").parse().expect("a URI"),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            timeout: Duration::from_millis(300),
            answer_bytes: 1000,
        }
    }

    /// Fetches from a server that sends these parts to each connection, and closes it if the last part is empty.
    async fn fetch_from(parts: &'static [&'static str]) -> Result<Answer, FetchError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = tokio::spawn(async move {
            loop {
                let Ok((mut stream, _)) = listener.accept().await else { return };
                let _ = stream.read(&mut [0; 4096]).await;
                for part in parts {
                    let _ = stream.write_all(part.as_bytes()).await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                if parts.last() != Some(&"") {
                    tokio::time::sleep(Duration::from_secs(5)).await;
                }
            }
        });
        let answer = fetcher(&["127.0.0.1"]).fetch(outgoing(port)).await;
        serving.abort();
        answer
    }

    #[tokio::test(flavor = "current_thread")]
    async fn answers_are_whole_or_errors() {
        let answer =
            fetch_from(&["HTTP/1.1 201 Created\r\ncontent-length: 4\r\na: b\r\n\r\n", "bo", "dy"]).await;
        let answer = answer.expect("the answer is right");
        assert_eq!((answer.status, &*answer.body), (StatusCode::CREATED, &b"body"[..]));
        for (parts, expected) in [
            (&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody", ""][..], "broken"),
            (&["nonsense\r\n\r\n", ""], "broken"),
            (&[""], "broken"),
            (&["HTTP/1.1 200 OK\r\n"], "within 300 ms"),
            (&["HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\nabc"], "within 300 ms"),
            (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", ""], "broken"),
        ] {
            let error = fetch_from(parts).await.expect_err("the answer is wrong").to_string();
            assert!(error.contains(expected), "{parts:?}: {error}");
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn large_answer_is_refused() {
        static LARGE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1388\r\n{}\r\n0\r\n\r\n",
                "x".repeat(5000)
            )
        });
        let error = fetch_from(Box::leak(Box::new([LARGE.as_str(), ""]))).await;
        assert_eq!(error, Err(FetchError::TooLarge(1000)));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn server_that_refuses_or_is_not_allowed_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let error = fetcher(&["*"]).fetch(outgoing(port)).await.expect_err("the address is private");
        assert!(matches!(&error, FetchError::Host(HostError::Private(..))), "{error:?}");
        let error = fetcher(&[]).fetch(outgoing(port)).await.expect_err("the list is empty");
        assert!(error.to_string().contains("allow_hosts"), "{error}");
        drop(listener);
        let error = fetcher(&["127.0.0.1"]).fetch(outgoing(port)).await.expect_err("nobody listens");
        assert!(matches!(&error, FetchError::Connect(_)), "{error:?}");
    }
}
