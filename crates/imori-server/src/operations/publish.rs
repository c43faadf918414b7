//! Publishes a message for an operator.

use imori_core::authorize::{Action, Object, authorize};
use imori_core::error::BrokerError;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, Property};
use serde_json::{Map, Value};

use super::vhost_operator::VhostOperator;
use crate::internal::InternalError;
use crate::requests::operation_error::OperationError;

/// The text properties, by RabbitMQ's names.
pub(crate) const TEXT_PROPERTIES: [(&str, Property); 7] = [
    ("content_type", Property::ContentType),
    ("content_encoding", Property::ContentEncoding),
    ("correlation_id", Property::CorrelationId),
    ("reply_to", Property::ReplyTo),
    ("message_id", Property::MessageId),
    ("type", Property::Type),
    ("app_id", Property::AppId),
];

/// Creates a message from a body and properties in RabbitMQ's form.
pub(crate) fn message(body: Vec<u8>, properties: &Map<String, Value>) -> OutgoingMessage {
    let mut message = OutgoingMessage::new(body);
    for (name, property) in TEXT_PROPERTIES {
        if let Some(text) = properties.get(name).and_then(Value::as_str) {
            message = message.with(property, text.as_bytes());
        }
    }
    message.properties.is_persistent = properties.get("delivery_mode").and_then(Value::as_u64) == Some(2);
    for (name, value) in properties.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        message = message.header(name.as_bytes(), text.as_bytes());
    }
    message
}

/// Converts a refused publish. Anything but a missing right is a fault of the request.
fn refused(error: InternalError) -> OperationError {
    match error {
        InternalError::Broker(refusal @ BrokerError::Refused(_)) => refusal.into(),
        other => OperationError::Bad(other.to_string()),
    }
}

impl VhostOperator {
    /// Publishes a message and waits for its confirm; returns the number of receivers.
    ///
    /// # Errors
    /// There is no such exchange, or the publish is refused.
    pub(crate) async fn publish(
        &self,
        exchange: &str,
        subject: &str,
        message: OutgoingMessage,
    ) -> Result<usize, OperationError> {
        if !self.has_exchange(exchange) {
            return Err(OperationError::Missing("exchange", exchange.to_owned()));
        }
        let entered = authorize(&self.identity, Action::Enter, self.vhost, Object::Vhost);
        entered.map_err(|refusal| OperationError::Bad(refusal.to_string()))?;
        let client = self.client().await?;
        let to = Address::new(exchange.as_bytes(), subject.as_bytes());
        let published = client.publish(to, message).await;
        Ok(published.map_err(refused)?.receivers)
    }
}
