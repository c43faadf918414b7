//! Bodies whose bytes are counted until they have left, or until the client has.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::respond::{Body, BodyError};

/// A body that calls `ended` with the bytes that were sent, once no more are.
pub(super) fn counted(body: Body, ended: impl FnOnce(u64) + 'static) -> Body {
    Body::stream(Counted { body, sent: 0, ended: Some(Box::new(ended)) })
}

struct Counted {
    body: Body,
    sent: u64,
    ended: Option<Box<dyn FnOnce(u64)>>,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            self.sent += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended(self.sent);
        }
    }
}
