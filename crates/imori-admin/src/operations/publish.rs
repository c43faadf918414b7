//! Publishes a message for an operator.

use imori_core::authorize::{Action, Object, authorize};
use imori_core::error::BrokerError;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, Property};
use imori_server::InternalError;
use imori_server::json_value::value_of;
use serde_json::{Map, Value};

use super::vhost_operator::VhostOperator;
use crate::objects::operation_error::OperationError;

/// The text properties, by RabbitMQ's names.
pub(crate) const TEXT_PROPERTIES: [(&str, Property); 8] = [
    ("content_type", Property::ContentType),
    ("content_encoding", Property::ContentEncoding),
    ("correlation_id", Property::CorrelationId),
    ("reply_to", Property::ReplyTo),
    ("message_id", Property::MessageId),
    ("type", Property::Type),
    ("app_id", Property::AppId),
    ("user_id", Property::UserId),
];

/// Creates a message from a body and properties in RabbitMQ's form. Headers keep their types.
///
/// # Errors
/// A property has no value of its type.
pub(crate) fn message(
    body: Vec<u8>,
    properties: &Map<String, Value>,
) -> Result<OutgoingMessage, OperationError> {
    let mut message = OutgoingMessage::new(body);
    for (name, property) in TEXT_PROPERTIES {
        if let Some(text) = properties.get(name).and_then(Value::as_str) {
            message = message.with(property, text.as_bytes());
        }
    }
    message.properties.is_persistent = properties.get("delivery_mode").and_then(Value::as_u64) == Some(2);
    message.properties.priority = number(properties, "priority")?;
    message.properties.expiration_ms = number(properties, "expiration")?;
    message.properties.timestamp = number(properties, "timestamp")?;
    for (name, value) in properties.get("headers").and_then(Value::as_object).into_iter().flatten() {
        message = message.typed_header(name.as_bytes(), value_of(value).into_owned());
    }
    Ok(message)
}

/// The value of a property that is a whole number, which may be written as text, as `expiration` is in AMQP 0-9-1.
fn number<T: TryFrom<u64>>(properties: &Map<String, Value>, name: &str) -> Result<Option<T>, OperationError> {
    let Some(value) = properties.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    let whole = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    match whole.and_then(|whole| T::try_from(whole).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(OperationError::Bad(format!(
            "property `{name}` is `{value}`; use a whole number of its size"
        ))),
    }
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
