//! The thread `admin`: it serves HTTP apart from the cells, so that neither holds up the other.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor as TlsStreamAcceptor;
use tracing::{debug, error, warn};

use super::places::{Place, Places};
use crate::config::Network;
use crate::limits::{
    ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HANDSHAKE_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX,
    HTTP_HEADERS_MAX, HTTP_LIFE_MAX, HTTP_WAITING_THREADS_MAX, LINGER_MAX,
};
use crate::peers::proxy::{Proxied, header_bytes, read_header};
use crate::peers::stranger::{BYTES_MAX as FIRST_BYTES_MAX, FirstBytes};
use crate::shared::{ListenerKind, Phase};
use crate::tls::TlsAcceptor;

/// The sockets of one service, whose connections share their places.
pub(crate) struct HttpListener {
    pub(crate) sockets: Vec<(ListenerKind, TcpListener)>,
    /// The answers.
    pub(crate) router: Router,
}

/// The means by which connections of HTTP begin.
#[derive(Debug, Clone)]
pub(crate) struct Security {
    /// The certificates of listeners with TLS.
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
    /// Networks of proxies that say for whom they connect.
    pub(crate) proxies: Arc<[Network]>,
}

/// Where a request came from, among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source(pub(crate) SocketAddr);

/// Tells who could read a request on its way, among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Secrecy {
    /// The request came inside TLS.
    pub(crate) is_encrypted: bool,
    /// The operator accepts passwords without it at this listener.
    pub(crate) accepts_plaintext: bool,
}

/// Serves these listeners until the broker has ended.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    listeners: Vec<HttpListener>,
    security: Security,
    phase: watch::Receiver<Phase>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(String::from("admin")).spawn(move || run(listeners, &security, phase))
}

fn run(listeners: Vec<HttpListener>, security: &Security, mut phase: watch::Receiver<Phase>) {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(HTTP_WAITING_THREADS_MAX)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(failure) => return error!(error = %failure, "HTTP cannot be served"),
    };
    runtime.block_on(async {
        for HttpListener { sockets, router } in listeners {
            let places = Places::new(HTTP_CONNECTIONS_MAX);
            for (listener, socket) in sockets {
                let security = security.clone();
                tokio::spawn(accept(listener, security, socket, router.clone(), Arc::clone(&places)));
            }
        }
        // What is not answered by then ends with the runtime.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    });
}

/// Takes requests in, as long as there is a place for one more client.
async fn accept(
    listener: ListenerKind,
    security: Security,
    socket: TcpListener,
    router: Router,
    places: Arc<Places>,
) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(listener = %listener.name, %error, "a listener of HTTP cannot be served"),
    };
    let mut is_logged = false;
    loop {
        match socket.accept().await {
            Ok((stream, source)) => {
                is_logged = false;
                let (place, router) = (Arc::new(places.take()), router.clone());
                let security = security.clone();
                tokio::spawn(begin(listener, security, stream, Source(source), router, place));
            }
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

/// Begins a connection, with what a proxy says of it, and TLS where the listener speaks it.
async fn begin(
    listener: ListenerKind,
    security: Security,
    mut stream: TcpStream,
    source: Source,
    router: Router,
    place: Arc<Place>,
) {
    let begun = tokio::select! {
        begun = timeout(HTTP_HEAD_MAX, peek(listener, &security, &mut stream, source)) => begun,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    let Ok(Some((source, is_proxied_tls))) = begun else { return };
    let secrecy = |is_encrypted| Secrecy { is_encrypted, accepts_plaintext: listener.accepts_plaintext };
    let Some(tls) = security.tls.filter(|_| listener.name.is_tls) else {
        return serve(stream, source, secrecy(is_proxied_tls), router, place).await;
    };
    let handshake = timeout(HTTP_HANDSHAKE_MAX, TlsStreamAcceptor::from(tls.config()).accept(stream));
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    match outcome {
        Ok(Ok(stream)) => serve(stream, source, secrecy(true), router, place).await,
        Ok(Err(error)) => {
            warn!(source = %source.0, listener = %listener.name, %error, "TLS handshake failed");
        }
        Err(_) => debug!(source = %source.0, "a handshake of TLS did not come to an end in its time"),
    }
}

/// Finds out for whom a proxy connects, and whether the client begins as it has to; gives its source, and whether it
/// speaks TLS with the proxy. `None` where it is refused, without an answer (SECURITY LIM-04).
async fn peek(
    listener: ListenerKind,
    security: &Security,
    stream: &mut TcpStream,
    source: Source,
) -> Option<(Source, bool)> {
    let name = listener.name;
    let is_proxy = security.proxies.iter().any(|network| network.contains(source.0.ip()));
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

/// Serves one connection, but not for ever, whatever its client does or does not do.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    source: Source,
    secrecy: Secrecy,
    router: Router,
    place: Arc<Place>,
) {
    let service = TowerToHyperService::new(router);
    let asked = Arc::clone(&place);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source);
        request.extensions_mut().insert(secrecy);
        let open = asked.request();
        let response = service.call(request);
        async move { response.await.map(|response| open.until_written(response)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEAD_MAX)
        .max_headers(HTTP_HEADERS_MAX)
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = timeout(HTTP_LIFE_MAX, connection.as_mut()) => outcome,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    if let Ok(outcome) = outcome {
        return outcome.unwrap_or_else(|error| debug!(%error, "HTTP request ended early"));
    }
    connection.as_mut().graceful_shutdown();
    // An answer that nobody reads is given up.
    let _ = timeout(LINGER_MAX, connection).await;
}
