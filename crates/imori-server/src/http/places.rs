//! Limits the number of HTTP connections.
//!
//! The limit is low, and an idle connection must not block an active one. So every connection is accepted, and if
//! there are too many, the oldest one without a request is closed.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, watch};

use crate::slots::unpoisoned;

/// The open connections, oldest first.
pub(super) struct Places {
    max: usize,
    life_max: Option<Duration>,
    taken: Mutex<Vec<Arc<Activity>>>,
}

/// State of a connection, shared with the others.
#[derive(Default)]
struct Activity {
    /// Requests whose responses are not fully written.
    requests: AtomicUsize,
    /// Notified when the connection has to close.
    evicted: Notify,
    /// Number of responses that keep the connection open beyond its lifetime.
    kept: watch::Sender<usize>,
}

impl Places {
    /// Allows `max` connections, each for at most `life_max`, if it has a limit.
    pub(super) fn new(max: usize, life_max: Option<Duration>) -> Arc<Places> {
        Arc::new(Places { max, life_max, taken: Mutex::default() })
    }

    /// Adds a connection. If there are too many, evicts the oldest without a request, or else the oldest of all.
    pub(super) fn take(self: &Arc<Places>) -> ConnectionSlot {
        let activity = Arc::new(Activity::default());
        let mut taken = unpoisoned(self.taken.lock());
        if taken.len() >= self.max {
            let waits = |activity: &Arc<Activity>| activity.requests.load(Ordering::Relaxed) == 0;
            let victim = taken.iter().position(waits).unwrap_or(0);
            taken.remove(victim).evicted.notify_one();
        }
        taken.push(Arc::clone(&activity));
        ConnectionSlot { activity, places: Arc::clone(self) }
    }
}

/// A connection's place; freed on drop.
pub(super) struct ConnectionSlot {
    activity: Arc<Activity>,
    places: Arc<Places>,
}

impl ConnectionSlot {
    /// The lifetime of the connection, if it has a limit.
    pub(super) fn life_max(&self) -> Option<Duration> {
        self.places.life_max
    }

    /// Resolves when the connection has to close.
    pub(super) async fn evicted(&self) {
        self.activity.evicted.notified().await;
    }

    /// Resolves when no response keeps the connection open beyond its lifetime.
    pub(super) async fn unkept(&self) {
        let mut kept = self.activity.kept.subscribe();
        // The sender is in the activity, which outlives this future.
        let _ = kept.wait_for(|kept| *kept == 0).await;
    }

    /// The means by which a request keeps the connection open.
    pub(super) fn keep_open(&self) -> KeepOpen {
        KeepOpen(Arc::clone(&self.activity))
    }

    /// Counts a request until the returned guard is dropped.
    pub(super) fn request(&self) -> OpenRequest {
        self.activity.requests.fetch_add(1, Ordering::Relaxed);
        OpenRequest(Arc::clone(&self.activity))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        unpoisoned(self.places.taken.lock()).retain(|activity| !Arc::ptr_eq(activity, &self.activity));
    }
}

/// Lets a response go on beyond the lifetime of its connection; in the extensions of each request.
#[derive(Clone)]
pub struct KeepOpen(Arc<Activity>);

impl KeepOpen {
    /// Keeps the connection open until the returned guard is dropped. A response that is not finished a few seconds
    /// later is cut, so a response for a client that stopped reading has to drop it.
    pub fn keep(&self) -> KeptOpen {
        self.0.kept.send_modify(|kept| *kept += 1);
        KeptOpen(Arc::clone(&self.0))
    }
}

impl fmt::Debug for KeepOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeepOpen").finish_non_exhaustive()
    }
}

/// Keeps a connection open beyond its lifetime while it exists.
pub struct KeptOpen(Arc<Activity>);

impl Drop for KeptOpen {
    fn drop(&mut self) {
        self.0.kept.send_modify(|kept| *kept -= 1);
    }
}

impl fmt::Debug for KeptOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptOpen").finish_non_exhaustive()
    }
}

/// A request in progress.
pub(super) struct OpenRequest(Arc<Activity>);

impl OpenRequest {
    /// Extends the request until the response is written or abandoned.
    pub(super) fn until_written(self, response: Response) -> Response {
        response.map(|body| Body::new(AnsweredBody { body, _request: self }))
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A response body that ends its request when dropped.
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

    fn is_evicted(place: &ConnectionSlot) -> bool {
        let mut context = Context::from_waker(std::task::Waker::noop());
        std::pin::pin!(place.evicted()).poll(&mut context).is_ready()
    }

    #[test]
    fn a_connection_is_kept_open_while_a_response_needs_it() {
        let place = Places::new(1, None).take();
        let is_unkept = |place: &ConnectionSlot| {
            let mut context = Context::from_waker(std::task::Waker::noop());
            std::pin::pin!(place.unkept()).poll(&mut context).is_ready()
        };
        assert!(is_unkept(&place));
        let (first, second) = (place.keep_open().keep(), place.keep_open().keep());
        drop(first);
        assert!(!is_unkept(&place));
        drop(second);
        assert!(is_unkept(&place));
    }

    #[test]
    fn whoever_asks_nothing_gives_way() {
        let places = Places::new(2, None);
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
