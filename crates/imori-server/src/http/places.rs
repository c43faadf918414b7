//! The places for connections of HTTP.
//!
//! There are few, and a connection that asks nothing must not keep out one that does. So everybody is let in, and
//! where that is one too many, whoever has waited longest without a request gives way.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::Notify;

use crate::slots::unpoisoned;

/// The connections that are there, the longest first.
pub(super) struct Places {
    max: usize,
    taken: Mutex<Vec<Arc<Activity>>>,
}

/// The state of a connection that others see.
#[derive(Default)]
struct Activity {
    /// Requests whose answers are not written yet.
    requests: AtomicUsize,
    /// The connection has to give way.
    evicted: Notify,
}

impl Places {
    /// So many places, all of them free.
    pub(super) fn new(max: usize) -> Arc<Places> {
        Arc::new(Places { max, taken: Mutex::default() })
    }

    /// Takes a place; without a free one, that of a connection that has asked nothing, or else the oldest.
    pub(super) fn take(self: &Arc<Places>) -> Place {
        let activity = Arc::new(Activity::default());
        let mut taken = unpoisoned(self.taken.lock());
        if taken.len() >= self.max {
            let waits = |activity: &Arc<Activity>| activity.requests.load(Ordering::Relaxed) == 0;
            let victim = taken.iter().position(waits).unwrap_or(0);
            taken.remove(victim).evicted.notify_one();
        }
        taken.push(Arc::clone(&activity));
        Place { activity, places: Arc::clone(self) }
    }
}

/// The place of one connection; free again when this is dropped.
pub(super) struct Place {
    activity: Arc<Activity>,
    places: Arc<Places>,
}

impl Place {
    /// Returns when the connection has to give way.
    pub(super) async fn evicted(&self) {
        self.activity.evicted.notified().await;
    }

    /// Notes a request; it lasts until what is given is dropped.
    pub(super) fn request(&self) -> OpenRequest {
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.activity))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        unpoisoned(self.places.taken.lock()).retain(|activity| !Arc::ptr_eq(activity, &self.activity));
    }
}

/// A request that is being answered.
pub(super) struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    /// Lets the request last until the whole answer is written, or given up.
    pub(super) fn until_written(self, response: Response) -> Response {
        response.map(|body| Body::new(AnsweredBody { body, _request: self }))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer with the request that it ends.
struct AnsweredBody {
    body: Body,
    _request: OpenRequest,
}

impl HttpBody for AnsweredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_evicted(place: &Place) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(place.evicted()).poll(&mut context).is_ready()
    }

    #[test]
    fn whoever_asks_nothing_gives_way() {
        let places = Places::new(2);
        let (busy, idle) = (places.take(), places.take());
        let request = busy.request();
        let third = places.take();
        assert!(!is_evicted(&busy) && is_evicted(&idle) && !is_evicted(&third));
        let asked = third.request();
        let fourth = places.take();
        assert!(is_evicted(&busy), "where all ask, the oldest gives way");
        drop((request, asked, idle, busy));
        assert_eq!(unpoisoned(places.taken.lock()).len(), 2);
        drop((third, fourth));
        assert!(unpoisoned(places.taken.lock()).is_empty());
    }
}
