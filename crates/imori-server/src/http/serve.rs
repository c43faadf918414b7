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
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, warn};

use super::places::{Place, Places};
use crate::config::Service;
use crate::limits::{
    ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX, HTTP_HEADERS_MAX, HTTP_LIFE_MAX,
    HTTP_WAITING_THREADS_MAX, LINGER_MAX,
};
use crate::shared::Phase;

/// The sockets of one service, whose connections share their places.
pub(crate) struct HttpListener {
    pub(crate) service: Service,
    pub(crate) sockets: Vec<TcpListener>,
    /// The answers.
    pub(crate) router: Router,
}

/// Where a request came from, among its extensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source(pub(crate) SocketAddr);

/// Serves these listeners until the broker has ended.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    listeners: Vec<HttpListener>,
    phase: watch::Receiver<Phase>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(String::from("admin")).spawn(move || run(listeners, phase))
}

fn run(listeners: Vec<HttpListener>, mut phase: watch::Receiver<Phase>) {
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
        for HttpListener { service, sockets, router } in listeners {
            let places = Places::new(HTTP_CONNECTIONS_MAX);
            for socket in sockets {
                tokio::spawn(accept(service, socket, router.clone(), Arc::clone(&places)));
            }
        }
        // What is not answered by then ends with the runtime.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    });
}

/// Takes requests in, as long as there is a place for one more client.
async fn accept(service: Service, socket: TcpListener, router: Router, places: Arc<Places>) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(%service, %error, "a listener of HTTP cannot be served"),
    };
    let mut is_logged = false;
    loop {
        match socket.accept().await {
            Ok((stream, source)) => {
                is_logged = false;
                tokio::spawn(serve(stream, Source(source), router.clone(), Arc::new(places.take())));
            }
            Err(error) => {
                if !is_logged {
                    warn!(%service, %error, "requests cannot be accepted");
                    is_logged = true;
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, but not for ever, whatever its client does or does not do.
async fn serve(stream: TcpStream, source: Source, router: Router, place: Arc<Place>) {
    let service = TowerToHyperService::new(router);
    let asked = Arc::clone(&place);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(source);
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
