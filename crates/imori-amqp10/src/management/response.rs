//! Builds responses: status, body, and the message around them.

use std::fmt::Display;

use imori_core::error::BrokerError;

use crate::codec::composite::Composite;
use crate::codec::composites::Properties;
use crate::codec::map::MapBuf;
use crate::codec::push::{push_map_of, push_value};
use crate::codec::restricted::MessageId;
use crate::codec::sections::SectionKind;
use crate::codec::value::Value;
use crate::protocol_error::ProtocolError;

/// The response to a request.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    /// The value of the body, encoded.
    body: Vec<u8>,
}

impl Response {
    /// A success without a body.
    pub(super) fn done() -> Response {
        Response::new(204, |out| push_value(out, Value::Null))
    }

    /// A response whose body `write` appends; it must append exactly one value.
    pub(super) fn new(status: u16, write: impl FnOnce(&mut Vec<u8>)) -> Response {
        let mut body = Vec::new();
        write(&mut body);
        Response { status, body }
    }

    /// A response with a map as its body.
    pub(super) fn of_map(status: u16, map: &MapBuf) -> Response {
        Response::new(status, |out| push_map_of(out, map.map()))
    }

    /// A refusal with an explanation.
    #[cold]
    pub(super) fn refused(status: u16, text: impl Display) -> Response {
        // `ProtocolError` shortens the text, which may quote the client.
        let text = ProtocolError::new(crate::codec::condition::PRECONDITION_FAILED, text);
        Response::new(status, |out| push_value(out, Value::String(text.text())))
    }

    /// Returns the message for the request with this id.
    pub(super) fn message(self, id: Option<MessageId<'_>>) -> Vec<u8> {
        let status = self.status.to_string();
        let properties = Properties { subject: Some(&status), correlation_id: id, ..Properties::default() };
        let mut out = Vec::new();
        properties.encode(&mut out);
        let mut headers = MapBuf::new();
        headers.push(Value::String("http:response"), Value::String("1.1"));
        SectionKind::ApplicationProperties.push(&mut out);
        push_map_of(&mut out, headers.map());
        SectionKind::AmqpValue.push(&mut out);
        out.extend_from_slice(&self.body);
        out
    }
}

impl From<BrokerError> for Response {
    /// Translates the core's refusal to RabbitMQ's status.
    #[cold]
    fn from(error: BrokerError) -> Response {
        use imori_core::route::RouteError;
        let status = match &error {
            BrokerError::NoQueue(_) | BrokerError::Route(RouteError::NoExchange(_)) => 404,
            BrokerError::Inequivalent { .. } | BrokerError::Route(RouteError::Differs { .. }) => 409,
            BrokerError::Refused(_)
            | BrokerError::Quota(_)
            | BrokerError::TooManyQueues
            | BrokerError::Route(RouteError::Reserved(_) | RouteError::DefaultExchange) => 403,
            _ => 400,
        };
        Response::refused(status, error)
    }
}

/// Adds a pair with a string as its key.
pub(super) fn put(map: &mut MapBuf, name: &str, value: Value<'_>) {
    map.push(Value::String(name), value);
}
