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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor as TlsStreamAcceptor;
use tracing::{debug, error, warn};

use super::places::{Place, Places};
use crate::config::ListenerName;
use crate::limits::{
    ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HANDSHAKE_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX,
    HTTP_HEADERS_MAX, HTTP_LIFE_MAX, HTTP_WAITING_THREADS_MAX, LINGER_MAX,
};
use crate::peers::stranger::{BYTES_MAX as FIRST_BYTES_MAX, FirstBytes};
use crate::shared::{ListenerKind, Phase};
use crate::tls::TlsAcceptor;

/// The sockets of one service, whose connections share their places.
pub(crate) struct HttpListener {
    pub(crate) sockets: Vec<(ListenerKind, TcpListener)>,
    /// The answers.
    pub(crate) router: Router,
}

/// Where a request came from, among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source(pub(crate) SocketAddr);

/// Whether a request came inside TLS, among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encrypted(pub(crate) bool);

/// Serves these listeners until the broker has ended.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    listeners: Vec<HttpListener>,
    tls: Option<Arc<TlsAcceptor>>,
    phase: watch::Receiver<Phase>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(String::from("admin")).spawn(move || run(listeners, tls.as_ref(), phase))
}

fn run(listeners: Vec<HttpListener>, tls: Option<&Arc<TlsAcceptor>>, mut phase: watch::Receiver<Phase>) {
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
                let tls = tls.cloned().filter(|_| listener.name.is_tls);
                tokio::spawn(accept(listener.name, tls, socket, router.clone(), Arc::clone(&places)));
            }
        }
        // What is not answered by then ends with the runtime.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    });
}

/// Takes requests in, as long as there is a place for one more client.
async fn accept(
    listener: ListenerName,
    tls: Option<Arc<TlsAcceptor>>,
    socket: TcpListener,
    router: Router,
    places: Arc<Places>,
) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(%listener, %error, "a listener of HTTP cannot be served"),
    };
    let mut is_logged = false;
    loop {
        match socket.accept().await {
            Ok((stream, source)) => {
                is_logged = false;
                let (place, router) = (Arc::new(places.take()), router.clone());
                tokio::spawn(begin(listener, tls.clone(), stream, Source(source), router, place));
            }
            Err(error) => {
                if !is_logged {
                    warn!(%listener, %error, "requests cannot be accepted");
                    is_logged = true;
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Begins a connection, with TLS where the listener speaks it.
async fn begin(
    listener: ListenerName,
    tls: Option<Arc<TlsAcceptor>>,
    stream: TcpStream,
    source: Source,
    router: Router,
    place: Arc<Place>,
) {
    let mut first = [0; FIRST_BYTES_MAX];
    let peeked = tokio::select! {
        peeked = timeout(HTTP_HEAD_MAX, stream.peek(&mut first)) => peeked,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    let Ok(Ok(len @ 1..)) = peeked else { return };
    let mut bytes = FirstBytes::default();
    bytes.note(first.get(..len).unwrap_or_default());
    let Some(tls) = tls else {
        if let Some(hint) = bytes.hint(listener) {
            return warn!(source = %source.0, %listener, hint, "client was refused");
        }
        return serve(stream, source, Encrypted(false), router, place).await;
    };
    // SECURITY LIM-04: who speaks no TLS is not answered.
    if !bytes.is_tls() {
        return warn!(source = %source.0, %listener, hint = bytes.hint(listener), "client was refused");
    }
    let handshake = timeout(HTTP_HANDSHAKE_MAX, TlsStreamAcceptor::from(tls.config()).accept(stream));
    let outcome = tokio::select! {
        outcome = handshake => outcome,
        () = place.evicted() => return debug!("an HTTP connection gave way to another"),
    };
    match outcome {
        Ok(Ok(stream)) => serve(stream, source, Encrypted(true), router, place).await,
        Ok(Err(error)) => warn!(source = %source.0, %listener, %error, "TLS handshake failed"),
        Err(_) => debug!(source = %source.0, "a handshake of TLS did not come to an end in its time"),
    }
}

/// Serves one connection, but not for ever, whatever its client does or does not do.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    source: Source,
    encrypted: Encrypted,
    router: Router,
    place: Arc<Place>,
) {
    let service = TowerToHyperService::new(router);
    let asked = Arc::clone(&place);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source);
        request.extensions_mut().insert(encrypted);
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
