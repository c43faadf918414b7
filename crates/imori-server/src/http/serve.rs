//! The thread `admin` serves HTTP apart from the cells, so that neither delays the other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse as _, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{self, Handle};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor as TlsStreamAcceptor;
use tracing::{debug, error, warn};

use super::places::{ConnectionSlot, Places};
use super::receiving::{BodyFault, ReceivedBody, Receiving};
use crate::bodies::Bodies;
use crate::limits::{
    ACCEPT_PAUSE, BODY_RETRY, FINISHING_TIME_MAX, HTTP_HANDSHAKE_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX,
    HTTP_HEADERS_MAX, HTTP_WAITING_THREADS_MAX, LINGER_MAX,
};
use crate::peers::proxy::{Proxied, header_bytes, read_header};
use crate::peers::stranger::{BYTES_MAX as FIRST_BYTES_MAX, FirstBytes};
use crate::services::{AcceptedConnection, TakeConnections};
use crate::settings::Settings;
use crate::shared::{ListenerKind, Phase, Shared};

/// An HTTP service; its connections share one limit across all listeners.
#[derive(Clone)]
pub(crate) struct HttpService {
    handler: Handler,
    places: Arc<Places>,
    shared: Arc<Shared>,
}

/// Who answers requests.
#[derive(Clone)]
enum Handler {
    Router(Router),
    /// A service with threads of its own takes the connections.
    Taker(Arc<dyn TakeConnections>),
}

impl HttpService {
    /// A service of this broker with these handlers, for at most this many connections. `life_max` is the lifetime of a
    /// connection, if it has a limit.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        router: Router,
        connections_max: usize,
        life_max: Option<Duration>,
    ) -> HttpService {
        HttpService {
            handler: Handler::Router(router),
            places: Places::new(connections_max, life_max),
            shared: Arc::clone(shared),
        }
    }

    /// A service of this broker whose connections another one takes, and limits.
    pub(crate) fn handing_over(shared: &Arc<Shared>, taker: Option<Arc<dyn TakeConnections>>) -> HttpService {
        HttpService {
            handler: taker.map_or_else(|| Handler::Router(Router::new()), Handler::Taker),
            places: Places::new(usize::MAX, None),
            shared: Arc::clone(shared),
        }
    }
}

/// Source address of a request, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source(pub(crate) SocketAddr);

/// Whether a request could be read in transit, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secrecy {
    /// The request came through TLS.
    pub(crate) is_encrypted: bool,
    /// The operator accepts plaintext passwords at this listener.
    pub(crate) accepts_plaintext: bool,
}

/// Starts the thread, which runs the HTTP runtime until the broker has ended.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    mut phase: watch::Receiver<Phase>,
    mut finishing: watch::Receiver<usize>,
) -> io::Result<(JoinHandle<()>, Handle)> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(HTTP_WAITING_THREADS_MAX)
        .build()?;
    let handle = runtime.handle().clone();
    let thread = Builder::new().name(String::from("admin")).spawn(move || {
        // Requests still unanswered then end with the runtime.
        runtime.block_on(async {
            drop(phase.wait_for(|phase| *phase == Phase::Ended).await);
            let finished = finishing.wait_for(|services| *services == 0);
            drop(timeout(FINISHING_TIME_MAX, finished).await);
        });
    });
    thread.map(|thread| (thread, handle))
}

/// Accepts connections; the oldest idle one makes room if necessary.
pub(crate) async fn accept(socket: TcpListener, listener: ListenerKind, service: HttpService) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(listener = %listener.name, %error, "a listener of HTTP cannot be served"),
    };
    let mut is_logged = false;
    loop {
        match socket.accept().await {
            Ok((stream, source)) => {
                is_logged = false;
                let place = Arc::new(service.places.take());
                tokio::spawn(begin(listener, stream, Source(source), service.clone(), place));
            }
            // The socket was shut down because another listener takes its place.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(error) => {
                if !is_logged {
                    warn!(listener = %listener.name, %error, "requests cannot be accepted");
                    is_logged = true;
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Starts a connection: reads the PROXY header, if any, and does the TLS handshake, if required.
async fn begin(
    listener: ListenerKind,
    mut stream: TcpStream,
    source: Source,
    HttpService { handler, shared, .. }: HttpService,
    place: Arc<ConnectionSlot>,
) {
    let settings = shared.settings.load_full();
    let begun = tokio::select! {
        begun = timeout(HTTP_HEAD_MAX, peek(listener, &settings, &mut stream, source)) => begun,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    let Ok(Some((source, is_proxied_tls))) = begun else { return };
    let router = match handler {
        Handler::Router(router) => router,
        Handler::Taker(taker) => {
            let tls = settings.tls.as_ref().filter(|_| listener.name.is_tls).map(|tls| tls.offer());
            return match stream.into_std() {
                Ok(stream) => taker.take(AcceptedConnection {
                    stream,
                    source: source.0,
                    tls,
                    is_encrypted: is_proxied_tls,
                    accepts_plaintext: listener.accepts_plaintext,
                }),
                Err(error) => debug!(%error, "an HTTP connection cannot be handed over"),
            };
        }
    };
    let bodies = Arc::clone(&shared.bodies);
    let secrecy = |is_encrypted| Secrecy { is_encrypted, accepts_plaintext: listener.accepts_plaintext };
    let Some(tls) = settings.tls.as_ref().filter(|_| listener.name.is_tls) else {
        return serve(stream, (source, bodies), secrecy(is_proxied_tls), router, place).await;
    };
    let handshake = timeout(HTTP_HANDSHAKE_MAX, TlsStreamAcceptor::from(tls.config()).accept(stream));
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    match outcome {
        Ok(Ok(stream)) => serve(stream, (source, bodies), secrecy(true), router, place).await,
        Ok(Err(error)) => {
            warn!(source = %source.0, listener = %listener.name, %error, "TLS handshake failed");
        }
        Err(_) => debug!(source = %source.0, "a handshake of TLS did not come to an end in its time"),
    }
}

/// Reads the PROXY header of a proxy and peeks at the client's first bytes. Returns the client's address and whether
/// it speaks TLS with the proxy. `None` refuses the connection without a response (SECURITY LIM-04).
async fn peek(
    listener: ListenerKind,
    settings: &Settings,
    stream: &mut TcpStream,
    source: Source,
) -> Option<(Source, bool)> {
    let name = listener.name;
    let is_proxy = settings.config.broker.proxy_from.iter().any(|network| network.contains(source.0.ip()));
    let proxied = match is_proxy {
        true => Some(read_proxied(stream).await),
        false => None,
    };
    if let Some(None) = proxied {
        warn!(source = %source.0, listener = %name, "client was refused: a proxy begins without PROXY protocol 2");
    }
    let Proxied { source: client, is_encrypted } =
        proxied.unwrap_or(Some(Proxied { source: None, is_encrypted: false }))?;
    let source = client.map_or(source, Source);
    let mut first = [0; FIRST_BYTES_MAX];
    let len = stream.peek(&mut first).await.ok().filter(|len| *len > 0)?;
    let mut bytes = FirstBytes::default();
    bytes.note(first.get(..len).unwrap_or_default());
    if let Some(hint) = bytes.hint(name) {
        warn!(source = %source.0, listener = %name, hint, "client was refused");
        return None;
    }
    Some((source, is_encrypted))
}

async fn read_proxied(stream: &mut TcpStream) -> Option<Proxied> {
    let mut bytes = Vec::new();
    loop {
        let (at, wanted) = (bytes.len(), header_bytes(&bytes).ok()?);
        if at == wanted {
            return read_header(&bytes).ok();
        }
        bytes.resize(wanted, 0);
        stream.read_exact(bytes.get_mut(at..)?).await.ok()?;
    }
}

/// The response to a request whose body was not read to its end.
fn refusal(fault: BodyFault) -> Response {
    let mut response = (fault.status(), [("connection", "close")], format!("{fault}\n")).into_response();
    if fault == BodyFault::NoRoom {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(BODY_RETRY.as_secs()));
    }
    response
}

/// Serves one connection, at most for its lifetime.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (source, bodies): (Source, Arc<Bodies>),
    secrecy: Secrecy,
    router: Router,
    place: Arc<ConnectionSlot>,
) {
    let service = TowerToHyperService::new(router);
    let asked = Arc::clone(&place);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source);
        request.extensions_mut().insert(secrecy);
        request.extensions_mut().insert(asked.keep_open());
        let receiving = Receiving::new(&bodies, source.0.ip());
        request.extensions_mut().insert(receiving.clone());
        let open = asked.request();
        let response = service.call(request.map(|body| ReceivedBody::new(body, receiving.clone())));
        async move {
            let response = response.await.map(|response| open.until_written(response));
            response.map(|response| receiving.fault().map_or(response, refusal))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEAD_MAX)
        .max_headers(HTTP_HEADERS_MAX)
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let life = async {
        match place.life_max() {
            Some(life_max) => timeout(life_max, connection.as_mut()).await,
            None => Ok(connection.as_mut().await),
        }
    };
    let outcome = tokio::select! {
        outcome = life => outcome,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    if let Ok(outcome) = outcome {
        return outcome.unwrap_or_else(|error| debug!(%error, "HTTP request ended early"));
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        outcome = connection.as_mut() => {
            return outcome.unwrap_or_else(|error| debug!(%error, "HTTP request ended early"));
        }
        () = place.unkept() => {}
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    }
    // A response that the client does not read is abandoned.
    let _ = timeout(LINGER_MAX, connection).await;
}
