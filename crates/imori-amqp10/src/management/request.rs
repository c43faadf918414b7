//! Parses requests: method, path, query and body.

use crate::codec::restricted::MessageId;
use crate::codec::sections::{Section, Sections};
use crate::codec::value::{Map, Value};
use crate::management::response::Response;

/// A request.
#[derive(Debug)]
pub(super) struct Request<'a> {
    /// The id that the response refers to.
    pub(super) id: Option<MessageId<'a>>,
    pub(super) method: &'a str,
    /// The segments of the path, decoded.
    pub(super) segments: Vec<String>,
    /// The last segment of the path, still encoded.
    pub(super) last_segment: &'a str,
    /// The parameters of the query, decoded.
    pub(super) query: Vec<(String, String)>,
    body: Value<'a>,
}

impl<'a> Request<'a> {
    /// Reads a request from the payload of a message.
    ///
    /// # Errors
    /// The payload is not a message, or not a request.
    pub(super) fn read(payload: &'a [u8]) -> Result<Request<'a>, String> {
        let (mut own, mut body) = (None, Value::Null);
        let mut rest = payload;
        // RabbitMQ's Python client puts the body of a GET first, so each section is read as if it
        // were alone.
        while !rest.is_empty() {
            let mut sections = Sections::new(rest);
            match sections.next_section().map_err(|error| error.to_string())? {
                Some(Section::Properties(properties)) => own = Some(properties),
                Some(Section::AmqpValue(value)) => body = value,
                _ => {}
            }
            rest = sections.rest();
        }
        let own = own.ok_or("a request to /management has properties")?;
        let method = own.subject.ok_or("a request to /management has its method as `subject`")?;
        let to = own.to.ok_or("a request to /management has its path as `to`")?;
        let (path, query) = to.split_once('?').unwrap_or((to, ""));
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = path.split('/').map(decoded).collect::<Option<Vec<_>>>();
        let query = query.split('&').filter(|part| !part.is_empty()).map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            // In a query, a plus means a space.
            Some((decoded(name)?, decoded(&value.replace('+', "%20"))?))
        });
        let query = query.collect::<Option<Vec<_>>>();
        let (Some(segments), Some(query)) = (segments, query) else {
            return Err(String::from("the path of the request is not percent-encoded; write `%25` for `%`"));
        };
        let last_segment = path.rsplit('/').next().unwrap_or_default();
        Ok(Request { id: own.message_id, method, segments, last_segment, query, body })
    }

    /// Returns the body, which must be a map.
    pub(super) fn map(&self) -> Result<Map<'a>, Response> {
        match self.body {
            Value::Map(map) => Ok(map),
            _ => Err(Response::refused(400, "the body of the request is not a map in an `amqp-value`")),
        }
    }

    /// Returns the body, if it is binary.
    pub(super) fn binary(&self) -> Option<&'a [u8]> {
        match self.body {
            Value::Binary(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns a parameter of the query.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Decodes percent-encoding; `None` if the result is not UTF-8.
pub fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    loop {
        match rest {
            [] => return String::from_utf8(bytes).ok(),
            [b'%', high, low, next @ ..] => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let byte = u8::try_from(digit(high)? * 16 + digit(low)?).ok()?;
                bytes.push(byte);
                rest = next;
            }
            [b'%', ..] => return None,
            [byte, next @ ..] => {
                bytes.push(*byte);
                rest = next;
            }
        }
    }
}

/// Percent-encodes a text for use in a path.
pub fn encoded(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            other => {
                out.push('%');
                for digit in [other >> 4, other & 15] {
                    out.push(char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase());
                }
            }
        }
    }
    out
}
