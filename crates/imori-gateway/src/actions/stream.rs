//! Messages as server-sent events.

use std::rc::Rc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use http_body_util::StreamBody;
use hyper::body::Frame;
use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::internal::IncomingMessage;
use imori_core::message::Address;
use imori_server::{ConsumeOptions, InternalClient, SubscribeOptions, Subscription};
use tokio::time::timeout;

use super::caller::{client_of, refuse};
use crate::facts::Facts;
use crate::limits::{HEARTBEAT, WAITING_MAX};
use crate::respond::{Body, BodyError, problem};
use crate::routes::{AddressTemplate, StreamAction};
use crate::shared::{FeedKey, Reader, event_text};
use crate::worker::Worker;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Begins a stream of events.
pub(super) async fn stream(
    worker: &Rc<Worker>,
    action: &StreamAction,
    facts: &Facts,
    identity: Option<&Identity>,
) -> Result<Response<Body>, Response<Body>> {
    let from = action.from.render(facts, facts.route.rest.as_deref());
    let from = from.map_err(|message| problem(StatusCode::BAD_REQUEST, &message))?;
    let client = client_of(worker, facts, identity).await?;
    let body = match action.from {
        AddressTemplate::Queue(_) => {
            let consumed = client.consume(ConsumeOptions::new(from.subject.as_bytes(), 16)).await;
            let subscription = consumed.map_err(|error| refuse(worker, identity, &error))?;
            of_queue(client, subscription, action.event.clone())
        }
        _ => {
            let mut reader = reader(worker, action, facts, identity, &client, from).await?;
            if let Some(id) = facts.request().headers.get(LAST_EVENT_ID) {
                reader.resume(id.to_str().unwrap_or_default());
            }
            of_feed(reader)
        }
    };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

async fn reader(
    worker: &Rc<Worker>,
    action: &StreamAction,
    facts: &Facts,
    identity: Option<&Identity>,
    client: &InternalClient,
    from: Address,
) -> Result<Reader, Response<Body>> {
    let key = FeedKey {
        vhost: facts.route.vhost.clone(),
        exchange: from.exchange.as_bytes().to_vec(),
        subject: from.subject.as_bytes().to_vec(),
        user: identity.map(|identity| identity.user.as_bytes().to_vec()).unwrap_or_default(),
        event: action.event.clone(),
        history: action.history,
    };
    if let Some(reader) = worker.shared.feeds.find(&key) {
        return Ok(reader);
    }
    let mut options = SubscribeOptions::new(from.exchange.as_bytes(), action.from.binding_key(&from));
    options.waiting_max = WAITING_MAX;
    let subscription = client.subscribe(options).await.map_err(|error| refuse(worker, identity, &error))?;
    let mut random = [0; 8];
    let _ = getrandom::fill(&mut random);
    let added = worker.shared.feeds.add(&key, u64::from_ne_bytes(random));
    let Some((reader, feed)) = added else {
        return Err(problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway has too many streams; try again later",
        ));
    };
    if let Some(feed) = feed {
        let shared = std::sync::Arc::clone(&worker.shared);
        tokio::task::spawn_local(async move {
            feed.run(subscription).await;
            shared.feeds.remove(&key, &feed);
        });
    }
    Ok(reader)
}

/// What a stream begins with, so that its client learns that it is there.
fn opening() -> Bytes {
    Bytes::from_static(b"retry: 1000\n\n")
}

fn of_feed(reader: Reader) -> Body {
    let events = stream::unfold((Some(opening()), reader), |(first, mut reader)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, BodyError>(Frame::data(first)), (None, reader)));
        }
        let text = match timeout(HEARTBEAT, reader.read()).await {
            Ok(text) => text?,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(Frame::data(text)), (None, reader)))
    });
    Body::stream(StreamBody::new(events))
}

/// The deliveries of one reader, who competes with others for them. One is settled once the next is asked for.
struct Deliveries {
    client: InternalClient,
    subscription: Subscription,
    event: Option<String>,
    sent: Option<IncomingMessage>,
    first: Option<Bytes>,
}

fn of_queue(client: InternalClient, subscription: Subscription, event: Option<String>) -> Body {
    let deliveries = Deliveries { client, subscription, event, sent: None, first: Some(opening()) };
    let events = stream::unfold(deliveries, |mut deliveries| async move {
        if let Some(first) = deliveries.first.take() {
            return Some((Ok::<_, BodyError>(Frame::data(first)), deliveries));
        }
        if let Some(sent) = deliveries.sent.take() {
            deliveries.client.settle(&sent, Outcome::Accept).await.ok()?;
        }
        let text = match timeout(HEARTBEAT, deliveries.subscription.recv()).await {
            Ok(message) => {
                let message = message.ok()?;
                let text = event_text("", deliveries.event.as_deref(), &message.body);
                deliveries.sent = Some(message);
                text
            }
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(Frame::data(text)), deliveries))
    });
    Body::stream(StreamBody::new(events))
}
