//! A message as its readers see it, whether it is stored or still in the sender's buffer.

use std::borrow::Cow;

use super::address::DEFAULT_EXCHANGE;
use super::properties::{OriginId, Properties, Property};
use super::value::Value;

/// A borrowed message.
#[derive(Debug, Clone, Copy)]
pub struct MessageView<'a> {
    /// Properties that all protocols share.
    pub properties: &'a Properties,
    /// The header block, in the origin's own form.
    pub text: &'a [u8],
    /// The body, which the broker never reads.
    pub body: &'a [u8],
}

impl<'a> MessageView<'a> {
    /// Bytes of the headers and the body.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.text.len() + self.body.len()
    }

    /// The value of a text property.
    pub fn property(&self, property: Property) -> Option<&'a [u8]> {
        self.properties.property(property, self.text)
    }
}

/// The header with the value by which consumers of a stream choose a message.
pub const FILTER_VALUE: &[u8] = b"x-stream-filter-value";

/// The header with the offset of a message, which a stream's readers get with each delivery.
pub const OFFSET: &str = "x-stream-offset";

/// Finds the reader of an origin's header blocks.
pub type HeaderReaders = fn(OriginId) -> &'static dyn HeaderReader;

/// An exchange and a subject in it, borrowed where that is possible.
pub type AddressParts<'t> = (Cow<'t, [u8]>, Cow<'t, [u8]>);

/// Reads the header blocks of one origin: this is how a protocol sees the headers of another.
pub trait HeaderReader {
    /// Calls `visit` with the name and value of each user header, in order.
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>));

    /// The first user header with this name, if there is one. An implementation may stop there.
    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        let mut found = None;
        self.visit_headers(text, &mut |known, value| {
            if found.is_none() && *known == *name {
                found = Some(value);
            }
        });
        found
    }

    /// The value by which consumers of a stream choose the message, if its publisher gave it one.
    fn filter_value<'t>(&self, text: &'t [u8]) -> Option<Value<'t>> {
        self.header(text, FILTER_VALUE)
    }

    /// Whether header values have types. Otherwise a text may stand for a number or a boolean.
    fn is_typed(&self) -> bool {
        true
    }

    /// When the sender claims to have sent the message, in milliseconds since the UNIX epoch.
    fn timestamp_ms(&self, message: &MessageView<'_>) -> Option<i64> {
        let seconds = i64::try_from(message.properties.timestamp?).ok()?;
        seconds.checked_mul(1000)
    }

    /// The address for replies to a message; each protocol writes it in its own form. `None` if the message
    /// has none, or one outside this broker.
    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        // As in AMQP: the name of a queue, or the key of an inbox.
        let key = message.property(Property::ReplyTo)?;
        Some((Cow::Borrowed(DEFAULT_EXCHANGE), Cow::Borrowed(key)))
    }

    /// The body for a receiver of another protocol: the message's own, unless the origin encodes bodies.
    fn body<'t>(&self, message: &MessageView<'t>) -> Cow<'t, [u8]> {
        Cow::Borrowed(message.body)
    }
}

/// The reader for messages of the broker itself, which have no header block.
#[derive(Debug)]
pub struct NoHeaders;

impl HeaderReader for NoHeaders {
    fn visit_headers<'t>(&self, _: &'t [u8], _: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {}
}
