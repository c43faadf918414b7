//! A body that ends with an error if nothing of it comes for too long.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::respond::BodyError;

/// The body of an upstream server's response. The time counts while the client waits for more, not while it reads.
pub(super) struct Unstalled {
    body: Incoming,
    patience: Duration,
    /// The end of the patience, while more is waited for.
    end: Pin<Box<Sleep>>,
    waits: bool,
}

impl Unstalled {
    pub(super) fn new(body: Incoming, patience: Duration) -> Unstalled {
        Unstalled { body, patience, end: Box::pin(sleep(patience)), waits: false }
    }
}

impl Body for Unstalled {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.waits = false;
            return Poll::Ready(frame.map(|frame| frame.map_err(BodyError::from)));
        }
        if !self.waits {
            self.waits = true;
            let end = Instant::now() + self.patience;
            self.end.as_mut().reset(end);
        }
        ready!(self.end.as_mut().poll(cx));
        Poll::Ready(Some(Err("the upstream server has sent nothing for too long".into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
