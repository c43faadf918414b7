//! A response body that goes on as long as its source does.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use tokio::sync::mpsc;

/// A response body that is written part by part, as events arrive.
pub(crate) struct Streamed(pub(crate) mpsc::Receiver<Bytes>);

impl Streamed {
    /// The response whose body is these parts of a stream of server-sent events.
    pub(crate) fn events(self) -> Response {
        let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")];
        (head, Body::new(self)).into_response()
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}
