//! A WebSocket that goes on to another server: the opening handshake is passed on, and after it the bytes of both sides.
//!
//! The gateway reads no frames: both ends keep to RFC 6455 with each other.

use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Method, Version};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;

use crate::limits::{DRAIN_MAX, TUNNEL_BUFFER_BYTES};
use crate::request_context::Request;
use crate::worker::Worker;

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

/// Whether a request opens a WebSocket (RFC 6455, 4.2.1). No other protocol is passed on.
pub(super) fn is_opening(request: &Request) -> bool {
    request.method == Method::GET && request.version == Version::HTTP_11 && names_websocket(&request.headers)
}

/// Whether the headers of a request or response switch to WebSocket.
pub(super) fn names_websocket(headers: &HeaderMap) -> bool {
    headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(WEBSOCKET.as_bytes()))
}

/// Adds the headers that switch one connection to WebSocket.
pub(super) fn add_switch(headers: &mut HeaderMap) {
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, WEBSOCKET);
}

/// Connects both sides once each has switched. Their connections are closed when one side closes its own, when no byte has
/// passed for `silence_max`, or when the broker stops.
pub(super) fn open(worker: &Rc<Worker>, client: OnUpgrade, upstream: OnUpgrade, silence_max: Duration) {
    let mut stopping = worker.shared.stopping();
    tokio::task::spawn_local(async move {
        let (client, upstream) = match tokio::try_join!(client, upstream) {
            Ok(both) => both,
            Err(error) => return debug!(%error, "a connection did not become a WebSocket"),
        };
        tokio::select! {
            () = pass(client, upstream, silence_max) => {}
            () = stopping.begun() => {}
        }
    });
}

async fn pass(client: Upgraded, upstream: Upgraded, silence_max: Duration) {
    let (mut from_client, mut to_client) = split(TokioIo::new(client));
    let (mut from_upstream, mut to_upstream) = split(TokioIo::new(upstream));
    let passed = Cell::new(Instant::now());
    let mut there = pin!(copy(&mut from_client, &mut to_upstream, &passed));
    let mut back = pin!(copy(&mut from_upstream, &mut to_client, &passed));
    // The other side may still answer the frame that closes.
    let both = async {
        tokio::select! {
            _ = there.as_mut() => drop(timeout(DRAIN_MAX, back).await),
            _ = back.as_mut() => drop(timeout(DRAIN_MAX, there).await),
        }
    };
    tokio::select! {
        () = both => {}
        () = silence(&passed, silence_max) => {}
    }
}

/// Copies until `from` ends, and ends `to` then.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    passed: &Cell<Instant>,
) -> io::Result<()> {
    let mut buffer = vec![0; TUNNEL_BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(buffer.get(..count).unwrap_or_default()).await?;
        to.flush().await?;
        passed.set(Instant::now());
    }
}

/// Returns once nothing has passed for so long.
async fn silence(passed: &Cell<Instant>, silence_max: Duration) {
    while passed.get().elapsed() < silence_max {
        sleep_until(passed.get() + silence_max).await;
    }
}
