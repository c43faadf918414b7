//! The thread `admin`: it serves HTTP, apart from the cells, so that neither holds up the other.

use std::io;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, warn};

use super::monitored::Monitored;
use super::routes::routes;
use crate::limits::{
    ACCEPT_PAUSE, HTTP_CONNECTIONS_MAX, HTTP_HEAD_BYTES_MAX, HTTP_HEAD_MAX, HTTP_HEADERS_MAX, HTTP_LIFE_MAX,
    LINGER_MAX,
};
use crate::shared::Phase;

/// Serves the monitor on these sockets until the broker has ended.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(sockets: Vec<TcpListener>, monitored: Monitored) -> io::Result<JoinHandle<()>> {
    Builder::new().name(String::from("admin")).spawn(move || run(sockets, &Arc::new(monitored)))
}

fn run(sockets: Vec<TcpListener>, monitored: &Arc<Monitored>) {
    let runtime = match runtime::Builder::new_current_thread().enable_io().enable_time().build() {
        Ok(runtime) => runtime,
        Err(failure) => return error!(error = %failure, "monitor cannot start"),
    };
    runtime.block_on(async {
        let mut phase = monitored.shared.phase.subscribe();
        let places = Arc::new(Semaphore::new(HTTP_CONNECTIONS_MAX));
        let router = routes(Arc::clone(monitored));
        for socket in sockets {
            tokio::spawn(accept(socket, router.clone(), Arc::clone(&places)));
        }
        // What is not answered by then ends with the runtime.
        let _ = phase.wait_for(|phase| *phase == Phase::Ended).await;
    });
}

/// Takes requests in, as long as there is a place for one more client.
async fn accept(socket: TcpListener, router: Router, places: Arc<Semaphore>) {
    let socket = match tokio::net::TcpListener::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return error!(%error, "monitor cannot be served"),
    };
    let mut is_logged = false;
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        match socket.accept().await {
            Ok((stream, _)) => {
                is_logged = false;
                let router = router.clone();
                tokio::spawn(async move {
                    serve(stream, router).await;
                    drop(place);
                });
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
async fn serve(stream: TcpStream, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HTTP_HEAD_MAX)
        .max_headers(HTTP_HEADERS_MAX)
        .max_buf_size(HTTP_HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    if let Ok(outcome) = timeout(HTTP_LIFE_MAX, connection.as_mut()).await {
        return outcome.unwrap_or_else(|error| debug!(%error, "request to the monitor ended early"));
    }
    connection.as_mut().graceful_shutdown();
    // An answer that nobody reads is given up.
    let _ = timeout(LINGER_MAX, connection).await;
}
