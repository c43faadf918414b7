//! Delivers the messages of queues to URLs: with retries, pauses that grow, and the dead-letter exchange at the end.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::internal::IncomingMessage;
use imori_core::message::Property;
use imori_server::{ClientOptions, ConsumeOptions, InternalClient};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::limits::REDECLARE_PAUSE;
use crate::outgoing::Versions;
use crate::respond::BodyError;
use crate::routes::{Configuration, Delivery};
use crate::shared::Shared;
use crate::upstream::Upstreams;

const ATTEMPT: HeaderName = HeaderName::from_static("imori-attempt");
const MESSAGE_ID: HeaderName = HeaderName::from_static("imori-message-id");
const SUBJECT: HeaderName = HeaderName::from_static("imori-subject");

/// The deliveries that run.
#[derive(Default)]
pub(crate) struct Deliveries(Vec<JoinHandle<()>>);

impl Deliveries {
    /// Ends them, and starts those of a configuration, on the runtime of services. Messages on their way come again.
    pub(crate) fn renew(&mut self, shared: &Arc<Shared>, configuration: &Configuration) {
        self.0.iter().for_each(JoinHandle::abort);
        let runtime = shared.broker.runtime();
        let start = |delivery: &Arc<Delivery>| runtime.spawn(run(Arc::clone(shared), Arc::clone(delivery)));
        self.0 = configuration.deliveries.iter().map(start).collect();
    }
}

/// Delivers until the broker ends; a queue that is not there yet is waited for.
async fn run(shared: Arc<Shared>, delivery: Arc<Delivery>) {
    let upstreams = Arc::new(Upstreams::default());
    let mut last = String::new();
    loop {
        let error = match consume(&shared, &delivery, &upstreams).await {
            Ok(()) => return,
            Err(error) => error,
        };
        // One line for each new reason.
        if error != last {
            warn!(queue = delivery.queue, error, "a delivery to a URL waits for its queue");
            last = error;
        }
        sleep(REDECLARE_PAUSE).await;
    }
}

async fn consume(
    shared: &Shared,
    delivery: &Arc<Delivery>,
    upstreams: &Arc<Upstreams>,
) -> Result<(), String> {
    let identity = match &delivery.user {
        None => Identity::broker(),
        Some(user) => {
            let identity = shared.broker.access().identity_of(user);
            identity.ok_or_else(|| format!("there is no user `{user}`"))?
        }
    };
    let mut options = ClientOptions::new(identity, delivery.vhost.as_bytes());
    options.name = String::from("gateway deliver");
    let connected = shared.broker.internal_clients().connect_with(options).await;
    let client = connected.map_err(|error| error.to_string())?;
    let options = ConsumeOptions::new(delivery.queue.as_bytes(), delivery.concurrency);
    let mut subscription = client.consume(options).await.map_err(|error| error.to_string())?;
    info!(queue = delivery.queue, "messages of a queue go to a URL");
    let places = Arc::new(Semaphore::new(delivery.concurrency as usize));
    let mut tasks = tokio::task::JoinSet::new();
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
        let message = subscription.recv().await.map_err(|reason| reason.to_string())?;
        let (client, delivery, upstreams) = (client.clone(), Arc::clone(delivery), Arc::clone(upstreams));
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            deliver(&client, &delivery, &upstreams, message).await;
            drop(place);
        });
    }
}

/// Delivers a message, or has it dead-lettered.
async fn deliver(
    client: &InternalClient,
    delivery: &Delivery,
    upstreams: &Upstreams,
    message: IncomingMessage,
) {
    let mut pause = delivery.backoff.0;
    for attempt in 0..=delivery.retries {
        let (reason, wait) = match send(delivery, upstreams, &message, attempt).await {
            Attempt::Done => return settle(client, &message, Outcome::Accept).await,
            Attempt::Refused(reason) => {
                warn!(
                    queue = delivery.queue,
                    reason, "a message is refused at its URL, and is dead-lettered"
                );
                return settle(client, &message, Outcome::Reject).await;
            }
            Attempt::Later(reason, wait) => (reason, wait),
        };
        if attempt == delivery.retries {
            warn!(queue = delivery.queue, reason, attempts = attempt + 1, "a message is dead-lettered");
            return settle(client, &message, Outcome::Reject).await;
        }
        sleep(wait.unwrap_or(pause).min(delivery.backoff.1)).await;
        pause = (pause * 2).min(delivery.backoff.1);
    }
}

async fn settle(client: &InternalClient, message: &IncomingMessage, outcome: Outcome) {
    // A client that has ended has given its messages back.
    let _ = client.settle(message, outcome).await;
}

/// The outcome of one request.
enum Attempt {
    Done,
    /// The server does not want the message, whenever it comes.
    Refused(String),
    /// It may be taken later, after this time if the server has named one.
    Later(String, Option<Duration>),
}

async fn send(
    delivery: &Delivery,
    upstreams: &Upstreams,
    message: &IncomingMessage,
    attempt: u32,
) -> Attempt {
    let body = Full::new(message.body.clone()).map_err(BodyError::from).boxed_unsync();
    let mut request = Request::new(body);
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = delivery.to.clone();
    let headers = request.headers_mut();
    let properties = [
        (CONTENT_TYPE, Property::ContentType),
        (CONTENT_ENCODING, Property::ContentEncoding),
        (MESSAGE_ID, Property::MessageId),
    ];
    for (name, property) in properties {
        let value = message.property(property).and_then(|value| HeaderValue::from_bytes(value).ok());
        value.map(|value| headers.insert(name, value));
    }
    if let Ok(subject) = HeaderValue::from_bytes(message.address.subject.as_bytes()) {
        headers.insert(SUBJECT, subject);
    }
    headers.insert(ATTEMPT, HeaderValue::from(attempt + 1));
    headers.extend(delivery.headers.iter().cloned());
    match timeout(delivery.timeout, upstreams.send(delivery.ca.as_deref(), Versions::All, request)).await {
        Err(_) => Attempt::Later(String::from("no answer in time"), None),
        Ok(Err(error)) => Attempt::Later(error.to_string(), None),
        Ok(Ok(response)) => outcome_of(response.status(), response.headers().get(RETRY_AFTER)),
    }
}

/// What a status means: 408, 425, 429 and 5xx may pass.
fn outcome_of(status: StatusCode, retry_after: Option<&HeaderValue>) -> Attempt {
    if status.is_success() {
        return Attempt::Done;
    }
    let may_pass = matches!(status.as_u16(), 408 | 425 | 429) || status.is_server_error();
    if !may_pass {
        return Attempt::Refused(status.to_string());
    }
    let seconds = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    Attempt::Later(status.to_string(), seconds.map(Duration::from_secs))
}
