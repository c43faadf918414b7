//! AMQP 0-9-1 messages for the command line: properties shown and given as headers.

use imori_amqp091::codec::properties::{BasicProperties, TextProperty};
use imori_amqp091::codec::push::push_field;
use imori_amqp091::codec::table::{FieldValue, Table};
use imori_client::Malformed;
use imori_client::amqp091::{Delivery, PERSISTENT};

use super::conversation::{Header, Received, number};
use super::error::ClientError;

/// `delivery-mode` of a message that is lost when the broker restarts.
const TRANSIENT: u8 = 1;

/// Encodes properties. Headers with the name of a property become that property; the others become
/// fields of the headers table.
pub fn properties(
    headers: &[Header],
    correlation: Option<&[u8]>,
    reply_to: Option<&str>,
) -> Result<Vec<u8>, ClientError> {
    let mut fields = Vec::new();
    let mut properties = BasicProperties {
        correlation_id: correlation.map(TextProperty::new),
        reply_to: reply_to.map(|name| TextProperty::new(name.as_bytes())),
        ..BasicProperties::default()
    };
    for Header { name, value } in headers {
        let text = Some(TextProperty::new(value.as_bytes()));
        match name.as_str() {
            "content-type" => properties.content_type = text,
            "content-encoding" => properties.content_encoding = text,
            "correlation-id" => properties.correlation_id = text,
            "reply-to" => properties.reply_to = text,
            "expiration" => properties.expiration = text,
            "message-id" => properties.message_id = text,
            "type" => properties.kind = text,
            "user-id" => properties.user_id = text,
            "app-id" => properties.app_id = text,
            "priority" => properties.priority = Some(number(name, value)?),
            "timestamp" => properties.timestamp = Some(number(name, value)?),
            "delivery-mode" => properties.delivery_mode = Some(number(name, value)?),
            "persistent" => {
                let is_persistent = value.eq_ignore_ascii_case("true");
                properties.delivery_mode = Some(if is_persistent { PERSISTENT } else { TRANSIENT });
            }
            _ => push_field(&mut fields, name.as_bytes(), FieldValue::Text(value.as_bytes())),
        }
    }
    let table = Table::new(&fields).map_err(|error| ClientError::Unspeakable(error.to_string()))?;
    properties.headers = (!table.is_empty()).then_some(table);
    let mut bytes = Vec::new();
    properties.push(&mut bytes);
    Ok(bytes)
}

/// Converts a delivery, with its properties as headers.
pub fn received(delivery: &Delivery<'_>) -> Result<Received, Malformed> {
    let deliver = &delivery.deliver;
    let properties = BasicProperties::read(delivery.properties)?;
    let mut headers: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    let mut add = |name: &[u8], value: &[u8]| headers.push((name.to_vec(), value.to_vec()));
    add(DELIVERY_TAG.as_bytes(), deliver.delivery_tag.to_string().as_bytes());
    add(b"exchange", deliver.exchange.as_bytes());
    add(b"routing-key", deliver.routing_key.as_bytes());
    add(b"redelivered", deliver.redelivered.to_string().as_bytes());
    for (name, value) in [
        ("content-type", properties.content_type),
        ("content-encoding", properties.content_encoding),
        ("correlation-id", properties.correlation_id),
        ("reply-to", properties.reply_to),
        ("expiration", properties.expiration),
        ("message-id", properties.message_id),
        ("type", properties.kind),
        ("user-id", properties.user_id),
        ("app-id", properties.app_id),
    ] {
        value.into_iter().for_each(|value| add(name.as_bytes(), value.bytes));
    }
    for (name, value) in [
        ("delivery-mode", properties.delivery_mode.map(u64::from)),
        ("priority", properties.priority.map(u64::from)),
        ("timestamp", properties.timestamp),
    ] {
        value.into_iter().for_each(|value| add(name.as_bytes(), value.to_string().as_bytes()));
    }
    for (name, value) in properties.headers.iter().flat_map(Table::iter) {
        add(name, &text(value));
    }
    let reply_to = properties.reply_to.map(|reply_to| reply_to.bytes.to_vec());
    Ok(Received { headers, reply_to, body: delivery.body.to_vec() })
}

/// The header that holds the delivery tag, which acknowledging needs.
pub(super) const DELIVERY_TAG: &str = "delivery-tag";

/// Formats a table value for people.
fn text(value: FieldValue<'_>) -> Vec<u8> {
    match value {
        FieldValue::Text(bytes) | FieldValue::Bytes(bytes) => bytes.to_vec(),
        FieldValue::Bool(value) => value.to_string().into_bytes(),
        FieldValue::I8(number) => number.to_string().into_bytes(),
        FieldValue::U8(number) => number.to_string().into_bytes(),
        FieldValue::I16(number) => number.to_string().into_bytes(),
        FieldValue::U16(number) => number.to_string().into_bytes(),
        FieldValue::I32(number) => number.to_string().into_bytes(),
        FieldValue::U32(number) => number.to_string().into_bytes(),
        FieldValue::I64(number) => number.to_string().into_bytes(),
        FieldValue::F32(number) => number.to_string().into_bytes(),
        FieldValue::F64(number) => number.to_string().into_bytes(),
        FieldValue::Timestamp(seconds) => seconds.to_string().into_bytes(),
        FieldValue::Decimal { scale, number } => format!("{number}e-{scale}").into_bytes(),
        FieldValue::Void => Vec::new(),
        FieldValue::Array(array) => {
            let values: Vec<Vec<u8>> = array.iter().map(text).collect();
            [b"[", values.join(&b", "[..]).as_slice(), b"]"].concat()
        }
        FieldValue::Table(table) => {
            let field = |(name, value): (&[u8], FieldValue<'_>)| [name, b": ", &text(value)].concat();
            let fields: Vec<Vec<u8>> = table.iter().map(field).collect();
            [b"{", fields.join(&b", "[..]).as_slice(), b"}"].concat()
        }
    }
}
