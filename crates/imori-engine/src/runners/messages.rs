//! Actions that publish a message, or call a service, through the broker that the engine is part of.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use imori_automation::value::{Map, Value};
use imori_core::authorize::Identity;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, Property};
use imori_server::InternalClient;

use super::outcome::Outcome;
use crate::engine::Engine;
use crate::executions::{Run, Status};
use crate::limits::CALL_TIMEOUT;

impl Engine {
    /// Publishes the message that the parameters describe; succeeds once the broker has confirmed it.
    pub(crate) async fn run_publish(self: &Arc<Self>, run: &Run) -> Outcome {
        let client = match self.message_client(run).await {
            Ok(client) => client,
            Err(reason) => return Outcome::failed(reason),
        };
        let message = match message(run) {
            Ok(message) => message,
            Err(reason) => return Outcome::failed(reason),
        };
        match client.publish(address(run), message).await {
            Ok(published) => {
                let mut result = Map::new();
                result.insert("receivers", i64::try_from(published.receivers).unwrap_or(i64::MAX));
                Outcome { status: Status::Succeeded, result: Value::Map(result) }
            }
            Err(error) => Outcome::failed(error.to_string()),
        }
    }

    /// Calls the service that the parameters describe; the result is its reply.
    pub(crate) async fn run_call(self: &Arc<Self>, run: &Run) -> Outcome {
        let client = match self.message_client(run).await {
            Ok(client) => client,
            Err(reason) => return Outcome::failed(reason),
        };
        let message = match message(run) {
            Ok(message) => message,
            Err(reason) => return Outcome::failed(reason),
        };
        match client.call(address(run), message, run.timeout(CALL_TIMEOUT)).await {
            Ok(reply) => {
                let body = match Value::from_json(&reply.body) {
                    Ok(value) => value,
                    Err(_) => Value::String(String::from_utf8_lossy(&reply.body).into_owned()),
                };
                let mut result = Map::new();
                result.insert("body", body);
                Outcome { status: Status::Succeeded, result: Value::Map(result) }
            }
            Err(error) => Outcome::failed(error.to_string()),
        }
    }

    async fn message_client(&self, run: &Run) -> Result<InternalClient, String> {
        let vhost = text(run, "vhost").unwrap_or("/");
        let client = self.broker.internal_clients().connect(Identity::broker(), vhost.as_bytes()).await;
        client.map_err(|error| error.to_string())
    }
}

/// A parameter, which may be one of the runner or of the action.
fn parameter<'a>(run: &'a Run, name: &str) -> Option<&'a Value> {
    run.parameters.get(name).or_else(|| run.runner_parameters.get(name)).filter(|value| !value.is_null())
}

fn text<'a>(run: &'a Run, name: &str) -> Option<&'a str> {
    parameter(run, name).and_then(Value::as_str)
}

fn address(run: &Run) -> Address {
    match text(run, "queue") {
        Some(queue) => Address::new(b"", queue.as_bytes()),
        None => {
            let exchange = text(run, "exchange").unwrap_or("amq.topic");
            Address::new(exchange.as_bytes(), text(run, "subject").unwrap_or_default().as_bytes())
        }
    }
}

/// The names of properties that are texts.
const PROPERTIES: [(&str, Property); 7] = [
    ("content_type", Property::ContentType),
    ("content_encoding", Property::ContentEncoding),
    ("correlation_id", Property::CorrelationId),
    ("reply_to", Property::ReplyTo),
    ("message_id", Property::MessageId),
    ("type", Property::Type),
    ("app_id", Property::AppId),
];

fn message(run: &Run) -> Result<OutgoingMessage, String> {
    let is_base64 = text(run, "body_encoding") == Some("base64");
    let body = match parameter(run, "body") {
        None => Vec::new(),
        Some(Value::String(text)) if is_base64 => {
            STANDARD.decode(text).map_err(|error| format!("`body` is not base64: {error}"))?
        }
        Some(Value::String(text)) => text.clone().into_bytes(),
        Some(other) => other.to_json().into_bytes(),
    };
    let properties = parameter(run, "properties").and_then(Value::as_map).cloned().unwrap_or_default();
    let is_persistent = properties.get("delivery_mode").is_none_or(|mode| mode.as_int() != Some(1));
    // An execution that runs again publishes under the same id, which a queue with a window ignores.
    let mut message =
        OutgoingMessage::new(body).persistent(is_persistent).with(Property::MessageId, run.id.as_bytes());
    for (name, value) in properties.iter() {
        let Some((_, property)) = PROPERTIES.iter().find(|(known, _)| *known == name) else {
            if name == "delivery_mode" {
                continue;
            }
            return Err(format!("property `{name}` is unknown; use one of {}", names()));
        };
        let value = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        message = message.with(*property, value.as_bytes());
    }
    for (name, value) in parameter(run, "headers").and_then(Value::as_map).into_iter().flat_map(Map::iter) {
        let value = value.as_str().map_or_else(|| value.to_json(), str::to_owned);
        message = message.header(name.as_bytes(), value.as_bytes());
    }
    Ok(message)
}

fn names() -> String {
    let names: Vec<String> = PROPERTIES.iter().map(|(name, _)| format!("`{name}`")).collect();
    names.join(", ")
}
