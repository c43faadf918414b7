//! A response body that is produced while it is written, so that a long one neither fills memory nor blocks other
//! requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::task::yield_now;

use crate::limits::HTTP_ROWS_AT_ONCE;

/// Produces the next part of a body; `None` at its end.
type Next = dyn FnMut() -> Option<String> + Send;

/// A body that `next` produces part by part. Other requests run between the parts.
pub fn gathered(next: impl FnMut() -> Option<String> + Send + 'static) -> Body {
    Body::new(Gathered { next: Box::new(next), has_rested: true })
}

/// Yields to other requests after every few rows.
pub(crate) async fn rest_at(index: usize) {
    if index % HTTP_ROWS_AT_ONCE == HTTP_ROWS_AT_ONCE - 1 {
        yield_now().await;
    }
}

struct Gathered {
    next: Box<Next>,
    /// Other requests ran since the last part.
    has_rested: bool,
}

impl HttpBody for Gathered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.has_rested {
            self.has_rested = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.has_rested = false;
        Poll::Ready((self.next)().map(|text| Ok(Frame::data(Bytes::from(text)))))
    }
}
