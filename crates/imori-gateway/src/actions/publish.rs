//! Publishes the body of a request, and responds once the message is as safe as its queues promise.

use std::rc::Rc;

use http::{HeaderName, Response, StatusCode};
use imori_core::authorize::Identity;
use imori_core::confirm::Level;
use imori_core::message::Property;
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use serde_json::json;

use super::caller::{client_of, refuse};
use super::message::message_of;
use crate::facts::Facts;
use crate::request_body::RequestBody;
use crate::respond::{Body, document, problem};
use crate::routes::{AddressTemplate, PublishAction};
use crate::worker::Worker;

/// The header whose value tells a repeated request from a new one (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The characters of a user's name that are encoded in a message id: the separator, and the sign of encoded ones.
const USER: &AsciiSet = &CONTROLS.add(b':').add(b'%');

/// Publishes the body of a request.
pub(super) async fn publish(
    worker: &Rc<Worker>,
    action: &PublishAction,
    facts: &Facts,
    identity: Option<&Identity>,
    body: RequestBody,
) -> Result<Response<Body>, Response<Body>> {
    let to = action.to.render(facts, facts.route.rest.as_deref());
    let to = to.map_err(|message| problem(StatusCode::BAD_REQUEST, &message))?;
    let client = client_of(worker, facts, identity).await?;
    let mut message = message_of(facts, body.read(facts.route.limits.body_bytes).await?, &action.headers);
    message.properties.is_persistent = action.is_persistent;
    message.properties.priority = action.priority;
    message.properties.expiration_ms = action.expiration_ms;
    if let Some(key) = facts.request().headers.get(IDEMPOTENCY_KEY) {
        // RFC 8941: a string is in quotes; most clients leave them out.
        let key = key.as_bytes();
        let bare = key.strip_prefix(b"\"").and_then(|key| key.strip_suffix(b"\"")).unwrap_or(key);
        message = message.with(Property::MessageId, &message_id(identity, bare));
    }
    let published =
        client.publish(to.clone(), message).await.map_err(|error| refuse(worker, identity, &error))?;
    let is_queue = matches!(action.to, AddressTemplate::Queue(_));
    if published.receivers == 0 && (is_queue || action.is_mandatory) {
        let detail = match is_queue {
            true => format!("there is no queue `{}`; declare it first", to.subject),
            false => format!("nobody receives what is published to `{}`", to.subject),
        };
        return Err(problem(StatusCode::NOT_FOUND, &detail));
    }
    let level = match published.level {
        Level::Memory => "memory",
        Level::Os => "os",
        Level::Disk => "disk",
    };
    Ok(document(StatusCode::OK, &json!({"receivers": published.receivers, "level": level})))
}

/// The message id of a key: keys belong to the user, so that no user's key answers the request of another. A user's
/// name is encoded, so that no two pairs of user and key make one id.
fn message_id(identity: Option<&Identity>, key: &[u8]) -> Vec<u8> {
    let user = identity.map(|identity| percent_encode(identity.user.as_bytes(), USER).to_string());
    [user.unwrap_or_default().as_bytes(), b":", key].concat()
}
