//! Reads the header block of a message from a STOMP client, also on behalf of other protocols.
//!
//! A block holds the header lines as the sender wrote them. If properties had to be unescaped, a
//! NUL follows the lines, and then the unescaped values.

use std::borrow::Cow;

use imori_core::message::{
    AddressParts, DEFAULT_EXCHANGE, HeaderReader, MessageView, NoHeaders, OriginId, Origins, Property, Value,
};
use memchr::{memchr, memchr_iter};

use crate::address::Destination;
use crate::codec::escape::{trim_spaces, unescape};
use crate::codec::version::Version;

/// The text properties and their STOMP header names.
pub(crate) const PROPERTIES: [(Property, &str); 8] = [
    (Property::ContentType, "content-type"),
    (Property::ContentEncoding, "content-encoding"),
    (Property::CorrelationId, "correlation-id"),
    (Property::ReplyTo, "reply-to"),
    (Property::MessageId, "amqp-message-id"),
    (Property::Type, "type"),
    (Property::UserId, "user-id"),
    (Property::AppId, "app-id"),
];

/// Headers stored as properties that are not text.
const OTHER_PROPERTIES: [&str; 4] = ["persistent", "priority", "expiration", "timestamp"];

/// The form of a header block. Stored records contain these numbers, so they must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockForm {
    /// Lines that mean the same in every version: no backslash, no carriage return, no second colon.
    Plain = 0,
    /// STOMP 1.0: nothing is escaped.
    V10 = 1,
    /// STOMP 1.1: `\n`, `\c` and `\\` are escapes.
    V11 = 2,
    /// STOMP 1.2: as 1.1, and `\r`.
    V12 = 3,
}

/// Number of header block forms, and so of the origins that STOMP needs.
pub const FORMS: u8 = 4;

/// STOMP's origins in a broker without other protocols.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

impl BlockForm {
    /// Returns the form of a block sent in `version`.
    pub(crate) fn sent_in(version: Version, is_plain: bool) -> Self {
        match version {
            _ if is_plain => Self::Plain,
            Version::V10 => Self::V10,
            Version::V11 => Self::V11,
            Version::V12 => Self::V12,
        }
    }
}

/// Whether the header `name` is stored as a property.
pub(crate) fn is_property(name: &[u8]) -> bool {
    let mut properties = PROPERTIES.iter().map(|(_, name)| name).chain(&OTHER_PROPERTIES);
    properties.any(|property| property.as_bytes() == name)
}

/// The rules for parsing the lines of a header block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The value is the text after the colon, unchanged.
    Plain,
    /// STOMP 1.0: spaces before the value are dropped.
    Trimmed,
    /// Names and values contain escapes.
    Escaped,
}

impl Form {
    /// Returns how to parse a block of this form; `None` if STOMP has no such form.
    pub(crate) fn of(block_form: u8) -> Option<Self> {
        match block_form {
            0 => Some(Self::Plain),
            1 => Some(Self::Trimmed),
            2 | 3 => Some(Self::Escaped),
            _ => None,
        }
    }
}

/// Returns the lines of a header text, without the unescaped values after them.
pub(crate) fn lines_of(text: &[u8]) -> &[u8] {
    memchr(b'\0', text).and_then(|at| text.get(..at)).unwrap_or(text)
}

/// Iterates over the headers of a header text.
pub(crate) fn headers(text: &[u8], form: Form) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    let lines = lines_of(text);
    let mut start = 0;
    memchr_iter(b'\n', lines).filter_map(move |end| {
        let line = lines.get(start..end)?;
        start = end + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (name, value) = line.split_at_checked(memchr(b':', line)?)?;
        let value = value.get(1..)?;
        Some(match form {
            Form::Plain => (Cow::Borrowed(name), Cow::Borrowed(value)),
            Form::Trimmed => (Cow::Borrowed(name), Cow::Borrowed(trim_spaces(value))),
            Form::Escaped => (unescape(name), unescape(value)),
        })
    })
}

/// Returns the reader for an origin of [`SOLE_ORIGINS`]; for any other origin it finds no headers.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// Returns the reader for a form of header block; for an unknown form it finds no headers.
pub fn reader_of_form(block_form: u8) -> &'static dyn HeaderReader {
    match Form::of(block_form) {
        Some(Form::Plain) => &StompHeaders { form: Form::Plain },
        Some(Form::Trimmed) => &StompHeaders { form: Form::Trimmed },
        Some(Form::Escaped) => &StompHeaders { form: Form::Escaped },
        None => &NoHeaders,
    }
}

/// Reads the user headers of a STOMP message; all of them are text.
#[derive(Debug)]
struct StompHeaders {
    form: Form,
}

impl HeaderReader for StompHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        for (name, value) in headers(text, self.form) {
            if !is_property(&name) {
                visit(name, Value::Text(value));
            }
        }
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        let mut headers = headers(text, self.form).filter(|(known, _)| **known == *name);
        headers.next().filter(|(name, _)| !is_property(name)).map(|(_, value)| Value::Text(value))
    }

    fn is_typed(&self) -> bool {
        false
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        let written = message.property(Property::ReplyTo)?;
        if message.properties.replies_to_inbox {
            return Some((Cow::Borrowed(DEFAULT_EXCHANGE), Cow::Borrowed(written)));
        }
        let destination = Destination::parse(written).ok()?;
        let (exchange, subject) = destination.address()?;
        Some((Cow::Owned(exchange.to_vec()), Cow::Owned(subject.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use imori_core::message::{Properties, Span};

    use super::*;

    const PLAIN: OriginId = SOLE_ORIGINS.origin(BlockForm::Plain as u8);
    const V10: OriginId = SOLE_ORIGINS.origin(BlockForm::V10 as u8);
    const V12: OriginId = SOLE_ORIGINS.origin(BlockForm::V12 as u8);

    #[test]
    fn user_headers_are_text_and_exclude_properties() {
        let reader = header_reader(V12);
        let mut seen = Vec::new();
        let text = b"persistent:true\na\\cb:c\\nd\ncontent-type:x\ne:f\r\n\0rest";
        reader.visit_headers(text, &mut |name, value| {
            let Value::Text(value) = value else { panic!("all are text") };
            seen.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        });
        assert_eq!(seen, ["a:b=c\\nd", "e=f"]);
        let value = |name: &str| reader.header(text, name.as_bytes());
        assert_eq!(value("a:b"), Some(Value::text(b"c\nd")));
        assert_eq!(value("e"), Some(Value::text(b"f")));
        assert_eq!((value("content-type"), value("persistent"), value("rest")), (None, None, None));
        header_reader(OriginId::BROKER).visit_headers(text, &mut |_, _| panic!("it is not STOMP's"));
    }

    #[test]
    fn a_reply_to_stands_for_an_address() {
        for (origin, written, expected) in [
            (PLAIN, "/queue/a%2Fb", Some(("", "a/b"))),
            (PLAIN, "bare", Some(("", "bare"))),
            (V12, "/topic/a.b", Some(("amq.topic", "a.b"))),
            (V10, "/exchange/x/k", Some(("x", "k"))),
            (V12, "/reply-queue/a/b", Some(("", "a/b"))),
            (V12, "mailto:nobody/at/all", None),
            // Not a STOMP origin: `reply-to` is the name of a queue.
            (OriginId::BROKER, "/queue/a", Some(("", "/queue/a"))),
        ] {
            let mut properties = Properties::new(origin);
            properties.set(Property::ReplyTo, Span::new(0, written.len()).unwrap());
            let message = MessageView { properties: &properties, text: written.as_bytes(), body: b"" };
            let found = header_reader(origin).reply_address(&message);
            let found = found.as_ref().map(|(exchange, key)| (&**exchange, &**key));
            let expected = expected.map(|(exchange, key)| (exchange.as_bytes(), key.as_bytes()));
            assert_eq!(found, expected, "{written}");
        }
    }
}
