//! The thread `admin`: it serves HTTP apart from the cells, so that neither holds up the other.

use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use axum::Router;
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
use crate::limits::{
    ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX, HTTP_HEADERS_MAX, HTTP_LIFE_MAX,
    LINGER_MAX,
};
use crate::shared::Phase;

/// Serves these sockets until the broker has ended; `router` has the answers.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(
    sockets: Vec<TcpListener>,
    router: Router,
    phase: watch::Receiver<Phase>,
) -> io::Result<JoinHandle<()>> {
    Builder::new().name(String::from("admin")).spawn(move || run(sockets, &router, phase))
}

fn run(sockets: Vec<TcpListener>, router: &Router, mut phase: watch::Receiver<Phase>) {
    let runtime = match runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(failure) => return error!(error = %failure, "monitor cannot start"),
    };
    runtime.block_on(async {
        let places = Places::new(HTTP_CONNECTIONS_MAX);
        for socket in sockets {
            tokio::spawn(accept(socket, router.clone(), Arc::clone(&places)));
        }
        // What is not answered by then ends with the runtime.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    });
}

/// Takes requests in, as long as there is a place for one more client.
async fn accept(socket: TcpListener, router: Router, places: Arc<Places>) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(%error, "monitor cannot be served"),
    };
    let mut is_logged = false;
    loop {
        match socket.accept().await {
            Ok((stream, _)) => {
                is_logged = false;
                tokio::spawn(serve(stream, router.clone(), Arc::new(places.take())));
            }
            Err(error) => {
                if !is_logged {
                    warn!(%error, "requests to the monitor cannot be accepted");
                    is_logged = true;
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, but not for ever, whatever its client does or does not do.
async fn serve(stream: TcpStream, router: Router, place: Arc<Place>) {
    let service = TowerToHyperService::new(router);
    let asked = Arc::clone(&place);
    let service = service_fn(move |request| {
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
        () = place.evicted() => return debug!("a connection to the monitor gave way to another"),
    };
    if let Ok(outcome) = outcome {
        return outcome.unwrap_or_else(|error| debug!(%error, "request to the monitor ended early"));
    }
    connection.as_mut().graceful_shutdown();
    // An answer that nobody reads is given up.
    let _ = timeout(LINGER_MAX, connection).await;
}
