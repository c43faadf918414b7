//! Messages of a queue, one a request: pulled with a token, and settled by it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::internal::IncomingMessage;
use imori_core::message::Property;
use imori_server::{ConsumeOptions, InternalClient, InternalError};
use tokio::time::{sleep, timeout};

use super::caller::{client_of, refuse};
use super::message::set_headers;
use crate::facts::Facts;
use crate::respond::{Body, problem};
use crate::routes::{Lookup as _, PullAction};
use crate::shared::Pull;
use crate::worker::Worker;

const ACK_TOKEN: HeaderName = HeaderName::from_static("imori-ack-token");
const REDELIVERED: HeaderName = HeaderName::from_static("imori-redelivered");
const MESSAGE_ID: HeaderName = HeaderName::from_static("imori-message-id");

/// Pulls a message by GET; settles one by DELETE, or by POST with an `outcome`.
pub(super) async fn pull(
    worker: &Rc<Worker>,
    action: &PullAction,
    facts: &Facts,
    identity: Option<&Identity>,
) -> Result<Response<Body>, Response<Body>> {
    let method = facts.request().method.clone();
    match method {
        Method::GET | Method::HEAD => next(worker, action, facts, identity).await,
        _ => settle(worker, facts, identity).await,
    }
}

async fn next(
    worker: &Rc<Worker>,
    action: &PullAction,
    facts: &Facts,
    identity: Option<&Identity>,
) -> Result<Response<Body>, Response<Body>> {
    let queue = action.queue.render(facts, facts.route.rest.as_deref());
    let queue = queue.map_err(|message| problem(StatusCode::BAD_REQUEST, &message))?;
    let wait = match facts.variable("arg_wait") {
        None => action.wait,
        Some(wait) => {
            let wait =
                wait.parse().map_err(|_| problem(StatusCode::BAD_REQUEST, "`wait` is in milliseconds"))?;
            Duration::from_millis(wait).min(action.wait)
        }
    };
    let client = client_of(worker, facts, identity).await?;
    let got = first(&client, queue.subject.as_bytes(), wait).await;
    let message = got.map_err(|error| refuse(worker, identity, &error))?;
    let Some(message) = message else {
        let mut response = Response::new(Body::Full(None));
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    };
    let user = identity.map(|identity| identity.user.as_bytes().to_vec()).unwrap_or_default();
    let pull = Pull { client: client.clone(), number: message.number, user };
    let Some(token) = worker.shared.pulled.add(pull) else {
        let _ = client.settle(&message, Outcome::Release { failed: false }).await;
        return Err(problem(
            StatusCode::TOO_MANY_REQUESTS,
            "too many messages wait for their settlement; settle some",
        ));
    };
    release_later(worker, token.clone(), action.ack_wait);
    let mut response = Response::new(Body::full(message.body.clone()));
    let headers = response.headers_mut();
    set_headers(headers, &message);
    headers
        .insert(REDELIVERED, HeaderValue::from_static(if message.is_redelivered { "true" } else { "false" }));
    let id = message.property(Property::MessageId).and_then(|id| HeaderValue::from_bytes(id).ok());
    id.map(|id| headers.insert(MESSAGE_ID, id));
    if let Ok(token) = HeaderValue::from_str(&token) {
        headers.insert(ACK_TOKEN, token);
    }
    Ok(response)
}

/// The first message of a queue, once there is one.
async fn first(
    client: &InternalClient,
    queue: &[u8],
    wait: Duration,
) -> Result<Option<IncomingMessage>, InternalError> {
    if let Some((message, _)) = client.get(queue, true).await? {
        return Ok(Some(message));
    }
    let mut subscription = client.consume(ConsumeOptions::new(queue, 1)).await?;
    match timeout(wait, subscription.recv()).await {
        Ok(message) => Ok(Some(message?)),
        Err(_) => Ok(None),
    }
}

/// Returns a message to its queue if it is not settled in time.
fn release_later(worker: &Rc<Worker>, token: String, ack_wait: Duration) {
    let shared = Arc::clone(&worker.shared);
    tokio::task::spawn_local(async move {
        sleep(ack_wait).await;
        if let Some(pull) = shared.pulled.take(&token, None) {
            let _ = pull.client.settle_all([pull.number], Outcome::Release { failed: true }).await;
        }
    });
}

async fn settle(
    worker: &Rc<Worker>,
    facts: &Facts,
    identity: Option<&Identity>,
) -> Result<Response<Body>, Response<Body>> {
    let token = facts.variable("arg_token").map(std::borrow::Cow::into_owned);
    let token = token.ok_or_else(|| {
        problem(StatusCode::BAD_REQUEST, "add `?token=` with the value of `Imori-Ack-Token` of the message")
    })?;
    let outcome = match facts.variable("arg_outcome").as_deref() {
        None | Some("accept") => Outcome::Accept,
        Some("release") => Outcome::Release { failed: true },
        Some("reject") => Outcome::Reject,
        Some(_) => return Err(problem(StatusCode::BAD_REQUEST, "`outcome` is accept, release or reject")),
    };
    let user = identity.map(|identity| identity.user.as_bytes()).unwrap_or_default();
    let Some(pull) = worker.shared.pulled.take(&token, Some(user)) else {
        let detail = "no message waits with this token; it was settled, or went back to its queue";
        return Err(problem(StatusCode::NOT_FOUND, detail));
    };
    let settled = pull.client.settle_all([pull.number], outcome).await;
    settled.map_err(|error| refuse(worker, identity, &error))?;
    let mut response = Response::new(Body::Full(None));
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
