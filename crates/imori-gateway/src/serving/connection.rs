//! One connection: its handshake, and its requests.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulConnection;
use imori_server::AcceptedConnection;
use imori_server::http::RequestOrigin;
use rustls::ProtocolVersion;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::answer::answer;
use super::handshake::shake_hands;
use crate::facts::ConnectionOrigin;
use crate::limits::{
    DRAIN_MAX, HANDSHAKE_MAX, HEAD_BYTES_MAX, HEAD_MAX, HEADERS_MAX, RESET_STREAMS_MAX, SEND_BYTES_MAX,
    STREAMS_MAX,
};
use crate::local::LocalExecutor;
use crate::request_context::Tls;
use crate::worker::Worker;

/// Serves a connection until it ends.
pub(crate) async fn serve(worker: Rc<Worker>, accepted: AcceptedConnection) {
    let AcceptedConnection { stream, source, tls, is_encrypted, accepts_plaintext } = accepted;
    let _ = stream.set_nodelay(true);
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return debug!(%error, "a connection cannot be served"),
    };
    let local = stream.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
    let number = worker.shared.next_connection();
    let mut origin = RequestOrigin { source, is_encrypted, accepts_plaintext, certificate: None };
    let Some(tls) = tls else {
        let place = ConnectionOrigin { origin, local, tls: None, number, requests: Cell::new(0) };
        return speak(worker, stream, Rc::new(place), false).await;
    };
    match timeout(HANDSHAKE_MAX, shake_hands(&worker, &tls, stream, (source, local, number))).await {
        Ok(Ok(stream)) => {
            let (_, session) = stream.get_ref();
            let verified = session.peer_certificates().and_then(|certificates| certificates.first());
            origin.certificate = verified.map(|verified| Arc::new(tls.certificate(verified)));
            origin.is_encrypted = true;
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            let tls = Tls {
                server_name: session.server_name().unwrap_or_default().to_owned(),
                version: session.protocol_version().map_or("", version_name).to_owned(),
                cipher: session
                    .negotiated_cipher_suite()
                    .and_then(|suite| suite.suite().as_str())
                    .unwrap_or_default()
                    .to_owned(),
                ..Tls::default()
            };
            let place = ConnectionOrigin { origin, local, tls: Some(tls), number, requests: Cell::new(0) };
            speak(worker, stream, Rc::new(place), is_http2).await;
        }
        Ok(Err(error)) => warn!(%source, %error, "TLS handshake failed"),
        Err(_) => debug!(%source, "a handshake of TLS did not come to an end in its time"),
    }
}

/// The name of a version, as nginx and OpenSSL write it.
fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => "",
    }
}

/// Serves the requests of a connection, which speaks HTTP/2 alone if that was agreed on.
async fn speak(
    worker: Rc<Worker>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    place: Rc<ConnectionOrigin>,
    is_http2: bool,
) {
    let mut builder = auto::Builder::new(LocalExecutor);
    if is_http2 {
        builder = builder.http2_only();
    }
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .keep_alive_interval(HEAD_MAX)
        .keep_alive_timeout(HEAD_MAX);
    let mut stopping = worker.shared.stopping();
    let own = Rc::clone(&worker);
    let unused = unused(Rc::clone(&place));
    let service = service_fn(move |request: Request<Incoming>| {
        let (worker, place) = (Rc::clone(&own), Rc::clone(&place));
        async move { Ok::<_, Infallible>(answer(worker, place, request).await) }
    });
    let ending = async move {
        tokio::select! { () = stopping.begun() => {}, () = unused => {} }
    };
    // Only HTTP/1.1 becomes a WebSocket, and a connection that may do so may not have agreed on HTTP/2.
    match is_http2 {
        true => run(builder.serve_connection(TokioIo::new(stream), service), ending).await,
        false => run(builder.serve_connection_with_upgrades(TokioIo::new(stream), service), ending).await,
    }
}

/// Runs a connection until it ends, or until some time after `ending`.
async fn run(connection: impl GracefulConnection<Error: fmt::Display>, ending: impl Future<Output = ()>) {
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = ending => {
            connection.as_mut().graceful_shutdown();
            let Ok(outcome) = timeout(DRAIN_MAX, connection).await else { return };
            outcome
        }
    };
    if let Err(error) = outcome {
        debug!(%error, "a connection ended early");
    }
}

/// Returns once the time for a first request has passed without one; does not return after one. HTTP's codec has timers of
/// its own, but only from the byte on which tells HTTP/1.1 from HTTP/2.
async fn unused(place: Rc<ConnectionOrigin>) {
    sleep(HEAD_MAX).await;
    if place.requests.get() > 0 {
        std::future::pending::<()>().await;
    }
}
