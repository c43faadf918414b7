//! Messages created by the broker itself, and the format of their header block.
//!
//! The block is the number of user headers as `u16`, then each header as name and text with `u16` length prefixes, then
//! the texts of the properties, which `Properties` locates by span. If a header is not text, the highest bit of the
//! number is set, and each value is encoded like an argument of a binding.

use std::borrow::Cow;

use bytes::Bytes;

use crate::limits::ARGUMENTS_DEPTH_MAX;
use crate::message::{HeaderReader, OriginId, Properties, Property, Publication, Span, Value};
use crate::route::arguments::{depth, push_value, take_value};

/// The maximum size of the header block, because lengths are 16-bit numbers.
const BLOCK_BYTES_MAX: usize = u16::MAX as usize;

/// Set in the number of headers if their values are typed.
const TYPED: u16 = 1 << 15;

/// A message to be published by an internal client. A clone shares the body.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The properties that are not text: persistence, priority, expiration, delay and timestamp.
    pub properties: Properties,
    headers: Vec<(Box<[u8]>, Value<'static>)>,
    texts: Vec<(Property, Box<[u8]>)>,
    ends_group: bool,
    body: Bytes,
}

impl OutgoingMessage {
    /// A transient message without headers.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> OutgoingMessage {
        OutgoingMessage {
            properties: Properties::new(OriginId::BROKER),
            headers: Vec::new(),
            texts: Vec::new(),
            ends_group: false,
            body: body.into(),
        }
    }

    /// Sets a text property, replacing an earlier value.
    #[must_use]
    pub fn with(mut self, property: Property, text: &[u8]) -> OutgoingMessage {
        self.texts.retain(|(other, _)| *other != property);
        self.texts.push((property, text.into()));
        self
    }

    /// Adds a user header that is text.
    #[must_use]
    pub fn header(self, name: &[u8], text: &[u8]) -> OutgoingMessage {
        self.typed_header(name, Value::Text(Cow::Owned(text.to_vec())))
    }

    /// Adds a user header of any type.
    #[must_use]
    pub fn typed_header(mut self, name: &[u8], value: Value<'static>) -> OutgoingMessage {
        self.headers.push((name.into(), value));
        self
    }

    /// Sets whether the message survives a restart in a durable queue.
    #[must_use]
    pub fn persistent(mut self, is_persistent: bool) -> OutgoingMessage {
        self.properties.is_persistent = is_persistent;
        self
    }

    /// Marks the message as the last of its group; the group's consumer then gives the group up.
    #[must_use]
    pub fn end_group(mut self) -> OutgoingMessage {
        self.ends_group = true;
        self
    }

    /// The body as it is published.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// The text of a property.
    #[must_use]
    pub fn property(&self, property: Property) -> Option<&[u8]> {
        self.texts.iter().find(|(other, _)| *other == property).map(|(_, text)| &**text)
    }

    /// Passes the message to `f` as a publication; `None` if its headers exceed 64 KiB or nest too deep.
    #[must_use]
    pub fn lend<R>(&self, f: impl FnOnce(&Publication<'_>) -> R) -> Option<R> {
        self.lend_with(None, f)
    }

    /// Passes the message to `f` as [`OutgoingMessage::lend`] does, with `inbox` as the reply address.
    pub(super) fn lend_with<R>(
        &self,
        inbox: Option<&[u8]>,
        f: impl FnOnce(&Publication<'_>) -> R,
    ) -> Option<R> {
        let (mut properties, mut text) = (self.own_properties(), Vec::new());
        if !self.headers.is_empty() || !self.texts.is_empty() || inbox.is_some() {
            self.push_headers(&mut text)?;
        }
        properties.replies_to_inbox |= inbox.is_some();
        let own = self.texts.iter().filter(|(property, _)| inbox.is_none() || *property != Property::ReplyTo);
        let texts = own.map(|(property, value)| (*property, &**value));
        for (property, value) in texts.chain(inbox.map(|inbox| (Property::ReplyTo, inbox))) {
            let start = text.len();
            text.extend_from_slice(value);
            properties.set(property, Span::new(start, value.len())?);
        }
        if self.ends_group {
            properties.end_group();
        }
        if text.len() > BLOCK_BYTES_MAX {
            return None;
        }
        Some(f(&Publication::with_shared_body(&properties, &text, &self.body)))
    }

    /// The properties that are not text. If the message was received, they also locate its texts in its protocol's
    /// block.
    fn own_properties(&self) -> Properties {
        let mut own = Properties::new(OriginId::BROKER);
        own.is_persistent = self.properties.is_persistent;
        own.priority = self.properties.priority;
        own.expiration_ms = self.properties.expiration_ms;
        own.delay_ms = self.properties.delay_ms;
        own.timestamp = self.properties.timestamp;
        own
    }

    fn push_headers(&self, out: &mut Vec<u8>) -> Option<()> {
        let is_typed = self.headers.iter().any(|(_, value)| !matches!(value, Value::Text(_)));
        let count = u16::try_from(self.headers.len()).ok().filter(|count| count & TYPED == 0)?;
        push_number(out, count | if is_typed { TYPED } else { 0 });
        for (name, value) in &self.headers {
            push_text(out, name)?;
            match value {
                Value::Text(text) if !is_typed => push_text(out, text)?,
                value if depth(value) > ARGUMENTS_DEPTH_MAX => return None,
                value => push_value(out, value),
            }
        }
        Some(())
    }
}

fn push_number(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) -> Option<()> {
    push_number(out, u16::try_from(text.len()).ok()?);
    out.extend_from_slice(text);
    Some(())
}

/// Decodes the header block of an [`OutgoingMessage`].
#[derive(Debug)]
pub struct BrokerHeaders;

impl HeaderReader for BrokerHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        let Some((count, mut rest)) = take_number(text) else { return };
        for _ in 0..count & !TYPED {
            let Some((name, mut behind)) = take_text(rest) else { return };
            if count & TYPED == 0 {
                let Some((value, behind)) = take_text(behind) else { return };
                visit(Cow::Borrowed(name), Value::text(value));
                rest = behind;
            } else {
                let Some(value) = take_value(&mut behind, ARGUMENTS_DEPTH_MAX) else { return };
                visit(Cow::Borrowed(name), value);
                rest = behind;
            }
        }
    }

    fn is_typed(&self) -> bool {
        false
    }
}

fn take_number(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_le_bytes(*number), rest))
}

fn take_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = take_number(bytes)?;
    rest.split_at_checked(usize::from(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(text: &[u8]) -> Vec<(Vec<u8>, Value<'static>)> {
        let mut found = Vec::new();
        BrokerHeaders
            .visit_headers(text, &mut |name, value| found.push((name.into_owned(), value.into_owned())));
        found
    }

    #[test]
    fn properties_and_headers_are_read_as_they_were_written() {
        let message = OutgoingMessage::new("body")
            .header(b"kind", b"test")
            .header(b"kind", b"")
            .with(Property::ReplyTo, b"nowhere")
            .with(Property::ReplyTo, b"queue")
            .with(Property::CorrelationId, b"7");
        let read = message.lend(|publication| {
            let view = publication.view();
            assert_eq!(view.property(Property::ReplyTo), Some(&b"queue"[..]));
            assert_eq!(view.property(Property::CorrelationId), Some(&b"7"[..]));
            assert_eq!(view.property(Property::MessageId), None);
            assert_eq!(view.body, b"body");
            headers(view.text)
        });
        let text = |text: &'static [u8]| Value::text(text);
        assert_eq!(read, Some(vec![(b"kind".to_vec(), text(b"test")), (b"kind".to_vec(), text(b""))]));
    }

    #[test]
    fn headers_of_every_type_are_read_as_they_were_written() {
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Int(-1),
            Value::Uint(u64::MAX),
            Value::Float(0.5),
            Value::Timestamp(7),
            Value::text(b"text"),
            Value::Binary(Cow::Borrowed(b"\0")),
            Value::List(vec![Value::Int(1), Value::Null]),
            Value::Map(vec![(Cow::Borrowed(&b"name"[..]), Value::Bool(false))]),
        ];
        let mut message = OutgoingMessage::new("").with(Property::Type, b"order");
        for value in values.clone() {
            message = message.typed_header(b"h", value.into_owned());
        }
        let read = message.lend(|publication| {
            assert_eq!(publication.view().property(Property::Type), Some(&b"order"[..]));
            headers(publication.view().text)
        });
        assert_eq!(read, Some(values.map(|value| (b"h".to_vec(), value)).to_vec()));
        let mut deep = Value::Null;
        for _ in 0..=ARGUMENTS_DEPTH_MAX {
            deep = Value::List(vec![deep]);
        }
        assert_eq!(OutgoingMessage::new("").typed_header(b"h", deep).lend(|_| ()), None);
    }

    #[test]
    fn a_call_has_its_own_reply_address() {
        let message = OutgoingMessage::new("").with(Property::ReplyTo, b"mine").with(Property::AppId, b"a");
        let read = message.lend_with(Some(b"inbox"), |publication| {
            let view = publication.view();
            assert!(view.properties.replies_to_inbox);
            (view.property(Property::ReplyTo).map(<[u8]>::to_vec), view.property(Property::AppId).is_some())
        });
        assert_eq!(read, Some((Some(b"inbox".to_vec()), true)));
    }

    #[test]
    fn a_message_without_headers_has_no_block() {
        let block = OutgoingMessage::new("").lend(|publication| publication.view().text.len());
        assert_eq!(block, Some(0));
        assert_eq!(headers(b""), Vec::new());
    }

    #[test]
    fn a_block_that_ends_too_early_gives_what_is_whole() {
        let message = OutgoingMessage::new("").header(b"a", b"b").header(b"c", b"d");
        let whole = message.lend(|publication| publication.view().text.to_vec()).unwrap();
        for end in 0..whole.len() {
            assert!(headers(&whole[..end]).len() < 2, "{end} bytes");
        }
        assert_eq!(headers(&whole).len(), 2);
    }

    #[test]
    fn headers_end_at_64_kib() {
        let message = OutgoingMessage::new("").header(b"long", &[b'a'; BLOCK_BYTES_MAX]);
        assert_eq!(message.lend(|_| ()), None);
    }
}
