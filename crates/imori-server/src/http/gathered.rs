//! A body that is gathered as it is written, so that a long answer takes neither memory nor the time of others.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::task::yield_now;

use crate::limits::HTTP_ROWS_AT_ONCE;

/// Makes the next part of a body; `None` where there is no more.
type Next = dyn FnMut() -> Option<String> + Send;

/// The body that `next` gives part by part. Between two parts other requests have their turn.
pub(crate) fn gathered(next: impl FnMut() -> Option<String> + Send + 'static) -> Body {
    Body::new(Gathered { next: Box::new(next), has_rested: true })
}

/// Gives other requests their turn after every few rows.
pub(crate) async fn rest_at(index: usize) {
    if index % HTTP_ROWS_AT_ONCE == HTTP_ROWS_AT_ONCE - 1 {
        yield_now().await;
    }
}

struct Gathered {
    next: Box<Next>,
    /// Others had their turn since the last part.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_have_their_turn_between_two_parts() {
        let mut parts = ["a", "b"].into_iter();
        let mut body = gathered(move || parts.next().map(String::from));
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut told = String::new();
        for _ in 0..6 {
            match Pin::new(&mut body).poll_frame(&mut context) {
                Poll::Pending => told.push('.'),
                Poll::Ready(Some(frame)) => {
                    told += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
                }
                Poll::Ready(None) => {
                    told.push('!');
                    break;
                }
            }
        }
        assert_eq!(told, "a.b.!");
    }
}
