//! Messages created by the broker itself, and the format of their header block.
//!
//! The block is the number of user headers as `u16`, then each header as name and text with `u16`
//! length prefixes, then the texts of the properties, which `Properties` locates by span.

use std::borrow::Cow;

use bytes::Bytes;

use crate::message::{HeaderReader, OriginId, Properties, Property, Publication, Span, Value};

/// The maximum size of the header block, because lengths are 16-bit numbers.
const BLOCK_BYTES_MAX: usize = u16::MAX as usize;

/// A message to be published by an internal client.
#[derive(Debug, Clone)]
pub struct OutgoingMessage {
    /// The properties that are not text: persistence, priority, expiration.
    pub properties: Properties,
    headers: Vec<Header>,
    texts: Vec<(Property, Box<[u8]>)>,
    body: Bytes,
}

/// A user header.
#[derive(Debug, Clone)]
struct Header {
    name: Box<[u8]>,
    text: Box<[u8]>,
}

impl OutgoingMessage {
    /// A transient message without headers.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> OutgoingMessage {
        OutgoingMessage {
            properties: Properties::new(OriginId::BROKER),
            headers: Vec::new(),
            texts: Vec::new(),
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

    /// Adds a user header.
    #[must_use]
    pub fn header(mut self, name: &[u8], text: &[u8]) -> OutgoingMessage {
        self.headers.push(Header { name: name.into(), text: text.into() });
        self
    }

    /// An upper bound for the size of the header block.
    fn block_bytes(&self) -> usize {
        let headers: usize =
            self.headers.iter().map(|header| 4 + header.name.len() + header.text.len()).sum();
        2 + headers + self.texts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    /// Passes the message to `f` as a publication; `None` if its headers exceed 64 KiB.
    #[must_use]
    pub fn lend<R>(&self, f: impl FnOnce(&Publication<'_>) -> R) -> Option<R> {
        if self.block_bytes() > BLOCK_BYTES_MAX {
            return None;
        }
        let (mut properties, mut text) = (self.properties, Vec::new());
        if !self.headers.is_empty() || !self.texts.is_empty() {
            push_number(&mut text, self.headers.len());
            for header in &self.headers {
                push_text(&mut text, &header.name);
                push_text(&mut text, &header.text);
            }
        }
        for (property, value) in &self.texts {
            let start = text.len();
            text.extend_from_slice(value);
            properties.set(*property, Span::new(start, value.len())?);
        }
        Some(f(&Publication::with_shared_body(&properties, &text, &self.body)))
    }
}

fn push_number(out: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).expect("the block is not longer than 64 KiB");
    out.extend_from_slice(&number.to_le_bytes());
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    push_number(out, text.len());
    out.extend_from_slice(text);
}

/// Decodes the header block of an [`OutgoingMessage`].
#[derive(Debug)]
pub struct BrokerHeaders;

impl HeaderReader for BrokerHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        let Some((count, mut rest)) = take_number(text) else { return };
        for _ in 0..count {
            let Some((name, behind)) = take_text(rest) else { return };
            let Some((value, behind)) = take_text(behind) else { return };
            visit(Cow::Borrowed(name), Value::text(value));
            rest = behind;
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
