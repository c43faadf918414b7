//! The message of a request, and what of a message becomes headers of a response.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use imori_core::internal::{IncomingMessage, OutgoingMessage};
use imori_core::message::Property;
use imori_core::message::Value;

use crate::facts::Facts;

/// Headers of a trace (W3C Trace Context), which messages always have.
const TRACE: [HeaderName; 3] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
    HeaderName::from_static("baggage"),
];

/// The message of a request: its body with the type, the trace and these headers.
pub(super) fn message_of(facts: &Facts, body: Bytes, headers: &[HeaderName]) -> OutgoingMessage {
    let mut message = OutgoingMessage::new(body);
    let request = facts.request();
    for (name, property) in
        [(CONTENT_TYPE, Property::ContentType), (CONTENT_ENCODING, Property::ContentEncoding)]
    {
        if let Some(value) = request.headers.get(name) {
            message = message.with(property, value.as_bytes());
        }
    }
    for name in TRACE.iter().chain(headers) {
        for value in request.headers.get_all(name) {
            message = message.header(name.as_str().as_bytes(), value.as_bytes());
        }
    }
    message
}

/// Sets the headers of a response that a message's properties stand for.
pub(super) fn set_headers(headers: &mut HeaderMap, message: &IncomingMessage) {
    let kind = message.property(Property::ContentType).unwrap_or(b"application/octet-stream");
    if let Ok(value) = HeaderValue::from_bytes(kind) {
        headers.insert(CONTENT_TYPE, value);
    }
    let encoding = message.property(Property::ContentEncoding);
    if let Some(value) = encoding.and_then(|encoding| HeaderValue::from_bytes(encoding).ok()) {
        headers.insert(CONTENT_ENCODING, value);
    }
}

/// The text of a message's header.
pub(super) fn text_of(message: &IncomingMessage, name: &[u8]) -> Option<String> {
    match message.header(name)? {
        Value::Text(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        _ => None,
    }
}
