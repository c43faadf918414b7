//! The header text of a message that a STOMP client sent: what its lines are, and how others read them.
//!
//! The text holds the header lines as their sender wrote them. Where properties had to be unescaped, a
//! NUL follows the lines, and after it their values.

use std::borrow::Cow;

use imori_core::message::{
    AddressParts, DEFAULT_EXCHANGE, HeaderReader, MessageView, OriginId, Property, Value,
};
use memchr::{memchr, memchr_iter};

use crate::address::Destination;
use crate::escape::{trim_spaces, unescape};
use crate::version::Version;

/// The names of the text properties as STOMP headers.
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

/// The headers that are properties and not text.
const OTHER_PROPERTIES: [&str; 4] = ["persistent", "priority", "expiration", "timestamp"];

/// The origin of a block of headers, by the version in which it was sent.
pub(crate) fn origin(version: Version, is_plain: bool) -> OriginId {
    match version {
        _ if is_plain => OriginId::STOMP_PLAIN,
        Version::V10 => OriginId::STOMP_10,
        Version::V11 => OriginId::STOMP_11,
        Version::V12 => OriginId::STOMP_12,
    }
}

/// Says that a header of this name is a property.
pub(crate) fn is_property(name: &[u8]) -> bool {
    let mut properties = PROPERTIES.iter().map(|(_, name)| name).chain(&OTHER_PROPERTIES);
    properties.any(|property| property.as_bytes() == name)
}

/// How the lines of a header block are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The value is what stands after the colon.
    Plain,
    /// As in STOMP 1.0: without the spaces before it.
    Trimmed,
    /// With escapes.
    Escaped,
}

impl Form {
    pub(crate) fn of(origin: OriginId) -> Option<Self> {
        match origin {
            OriginId::STOMP_PLAIN => Some(Self::Plain),
            OriginId::STOMP_10 => Some(Self::Trimmed),
            OriginId::STOMP_11 | OriginId::STOMP_12 => Some(Self::Escaped),
            _ => None,
        }
    }
}

/// The lines of a header text, without the values that may stand behind them.
pub(crate) fn lines_of(text: &[u8]) -> &[u8] {
    memchr(b'\0', text).and_then(|at| text.get(..at)).unwrap_or(text)
}

/// Goes through the headers of a header text.
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

/// The reader of the header blocks of this origin. In one that is not STOMP's it finds nothing.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    match Form::of(origin) {
        Some(Form::Plain) => &StompHeaders { form: Some(Form::Plain) },
        Some(Form::Trimmed) => &StompHeaders { form: Some(Form::Trimmed) },
        Some(Form::Escaped) => &StompHeaders { form: Some(Form::Escaped) },
        None => &StompHeaders { form: None },
    }
}

/// Reads the user headers that a STOMP client sent, all of them text.
#[derive(Debug)]
struct StompHeaders {
    form: Option<Form>,
}

impl HeaderReader for StompHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        let Some(form) = self.form else { return };
        for (name, value) in headers(text, form) {
            if !is_property(&name) {
                visit(name, Value::Text(value));
            }
        }
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        let written = message.property(Property::ReplyTo)?;
        if self.form.is_none() || message.head.replies_to_inbox {
            return Some((Cow::Borrowed(DEFAULT_EXCHANGE), Cow::Borrowed(written)));
        }
        let destination = Destination::parse(written).ok()?;
        let (exchange, subject) = destination.address()?;
        Some((Cow::Owned(exchange.to_vec()), Cow::Owned(subject.to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use imori_core::message::{Head, Span};

    use super::*;

    #[test]
    fn user_headers_are_text_and_exclude_properties() {
        let reader = header_reader(OriginId::STOMP_12);
        let mut seen = Vec::new();
        let text = b"persistent:true\na\\cb:c\\nd\ncontent-type:x\ne:f\r\n\0rest";
        reader.visit_headers(text, &mut |name, value| {
            let Value::Text(value) = value else { panic!("all are text") };
            seen.push(format!("{}={}", name.escape_ascii(), value.escape_ascii()));
        });
        assert_eq!(seen, ["a:b=c\\nd", "e=f"]);
        header_reader(OriginId::BROKER).visit_headers(text, &mut |_, _| panic!("it is not STOMP's"));
    }

    #[test]
    fn a_reply_to_stands_for_an_address() {
        for (origin, written, expected) in [
            (OriginId::STOMP_PLAIN, "/queue/a%2Fb", Some(("", "a/b"))),
            (OriginId::STOMP_PLAIN, "bare", Some(("", "bare"))),
            (OriginId::STOMP_12, "/topic/a.b", Some(("amq.topic", "a.b"))),
            (OriginId::STOMP_10, "/exchange/x/k", Some(("x", "k"))),
            (OriginId::STOMP_12, "/reply-queue/a/b", Some(("", "a/b"))),
            (OriginId::STOMP_12, "mailto:nobody/at/all", None),
            // Not of STOMP: the name of a queue.
            (OriginId::BROKER, "/queue/a", Some(("", "/queue/a"))),
        ] {
            let mut head = Head::new(origin);
            head.set(Property::ReplyTo, Span::new(0, written.len()).unwrap());
            let message = MessageView { head: &head, text: written.as_bytes(), body: b"" };
            let found = header_reader(origin).reply_address(&message);
            let found = found.as_ref().map(|(exchange, key)| (&**exchange, &**key));
            let expected = expected.map(|(exchange, key)| (exchange.as_bytes(), key.as_bytes()));
            assert_eq!(found, expected, "{written}");
        }
    }
}
