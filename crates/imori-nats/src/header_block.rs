//! Reads the header text of a message from a NATS client: the reply subject, then the header block;
//! either may be empty.
//!
//! Properties are extracted when the message arrives, in one pass over the lines. User headers are
//! read only if another protocol or a headers exchange needs them.

use std::borrow::Cow;

use imori_core::message::{
    AddressParts, HeaderReader, MessageView, NoHeaders, OriginId, Origins, Properties, Property, Span, Value,
};
use imori_streams::duration::Nanos;

use crate::address::address;
use crate::codec::headers::Headers;
use crate::codec::number::parse_u64;
use crate::codec::operation::Publish;
use crate::counter;

/// The form of a message without a header block: the text is the reply subject, which may be empty.
/// Stored records contain the numbers of forms, so they must not change.
pub(crate) const PLAIN: u8 = 0;

/// The form of a message with a header block: the text is the reply subject, which may be empty,
/// followed by the block.
pub(crate) const HEADERS: u8 = 1;

/// Number of header block forms, and so of the origins that NATS needs.
pub const FORMS: u8 = 2;

/// NATS's origins in a broker without other protocols.
pub const SOLE_ORIGINS: Origins = Origins::new(1, FORMS);

/// The begin of the names of all headers that streams read.
const STREAM_PREFIX: &[u8] = b"Nats-";

/// The text properties and their NATS header names.
pub(crate) const TEXT_PROPERTIES: [(Property, &str); 7] = [
    (Property::ContentType, "content-type"),
    (Property::ContentEncoding, "content-encoding"),
    (Property::CorrelationId, "correlation-id"),
    (Property::MessageId, "Nats-Msg-Id"),
    (Property::Type, "type"),
    (Property::UserId, "user-id"),
    (Property::AppId, "app-id"),
];

/// The headers of a message, as the broker keeps them.
pub(crate) struct ReadHeaders<'t> {
    pub(crate) properties: Properties,
    pub(crate) text: &'t [u8],
    /// Some header is one that streams may read.
    pub(crate) is_for_streams: bool,
}

/// Reads the headers of a message from `user`. `scratch` holds the text if it is not contiguous in the input. As in the
/// other protocols, the first of repeated headers counts.
#[inline]
pub(crate) fn read<'t>(
    publish: &Publish<'t>,
    origins: Origins,
    user: &[u8],
    scratch: &'t mut Vec<u8>,
) -> ReadHeaders<'t> {
    let reply = publish.reply.unwrap_or_default();
    let Some(block) = publish.headers.filter(|block| !block.is_empty()) else {
        let mut properties = Properties::new(origins.origin(PLAIN));
        set(&mut properties, Property::ReplyTo, 0, reply);
        return ReadHeaders { properties, text: reply, is_for_streams: false };
    };
    let mut properties = Properties::new(origins.origin(HEADERS));
    set(&mut properties, Property::ReplyTo, 0, reply);
    let (mut seen, mut sequence, mut is_for_streams) = (0_u32, None, false);
    for (name, value) in Headers::new(block) {
        is_for_streams |= name.starts_with(STREAM_PREFIX);
        let at = reply.len() + (value.as_ptr().addr() - block.as_ptr().addr());
        match field(name) {
            // SECURITY AUTH-08: a client may name only its own user.
            Field::Text(Property::UserId) if value != user => {}
            Field::Text(property) => {
                let bit = 1 << property as u32;
                if seen & bit == 0 {
                    set(&mut properties, property, at, value);
                }
                seen |= bit;
            }
            Field::Priority => properties.priority = properties.priority.or_else(|| number(value)),
            Field::Expiration => {
                properties.expiration_ms = properties.expiration_ms.or_else(|| number(value));
            }
            Field::Ttl => properties.expiration_ms = properties.expiration_ms.or_else(|| ttl_ms(value)),
            Field::Timestamp => properties.timestamp = properties.timestamp.or_else(|| parse_u64(value)),
            Field::Group if !properties.has(Property::GroupId) => {
                set(&mut properties, Property::GroupId, at, value);
            }
            Field::GroupSequence => sequence = sequence.or(Some(value)),
            Field::Group | Field::Forged | Field::User => {}
        }
    }
    if sequence == Some(b"-1") {
        properties.end_group();
    }
    if reply.is_empty() {
        return ReadHeaders { properties, text: block, is_for_streams };
    }
    scratch.clear();
    scratch.extend_from_slice(reply);
    scratch.extend_from_slice(block);
    ReadHeaders { properties, text: scratch, is_for_streams }
}

/// Returns the header block of a message from a NATS client.
#[inline]
pub(crate) fn block<'t>(message: &MessageView<'t>) -> &'t [u8] {
    let reply_len = message.property(Property::ReplyTo).map_or(0, <[u8]>::len);
    message.text.get(reply_len..).unwrap_or_default()
}

/// The role of a header for the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Text(Property),
    Priority,
    Expiration,
    /// The time to live of a message in a stream, which receivers get as a user header.
    Ttl,
    Timestamp,
    /// The message's group, which receivers get as a user header.
    Group,
    /// The message's number in its group, which receivers get as a user header.
    GroupSequence,
    /// A header that only the broker may write.
    Forged,
    User,
}

/// SECURITY AUTH-08: whether a header is about deaths, which only the broker may report.
pub(crate) fn is_of_deaths(name: &[u8]) -> bool {
    [&b"x-death"[..], b"x-first-death-", b"x-last-death-"].iter().any(|prefix| name.starts_with(prefix))
}

#[inline]
fn field(name: &[u8]) -> Field {
    // By length first, so that most names need at most one comparison.
    match name.len() {
        4 if name == b"type" => Field::Text(Property::Type),
        6 if name == b"app-id" => Field::Text(Property::AppId),
        7 if name == b"user-id" => Field::Text(Property::UserId),
        8 if name == b"priority" => Field::Priority,
        8 if name == b"Nats-TTL" => Field::Ttl,
        9 if name == b"timestamp" => Field::Timestamp,
        10 if name == b"expiration" => Field::Expiration,
        10 if name == b"message-id" => Field::Text(Property::MessageId),
        11 if name == b"Nats-Msg-Id" => Field::Text(Property::MessageId),
        11 if name == b"JMSXGroupID" => Field::Group,
        12 if name == b"content-type" => Field::Text(Property::ContentType),
        12 if name == b"JMSXGroupSeq" => Field::GroupSequence,
        14 if name == b"correlation-id" => Field::Text(Property::CorrelationId),
        16 if name == b"content-encoding" => Field::Text(Property::ContentEncoding),
        _ if name.first() == Some(&b'x') && is_of_deaths(name) => Field::Forged,
        _ => Field::User,
    }
}

/// Whether the header `name` is a user header.
fn is_of_user(name: &[u8]) -> bool {
    matches!(field(name), Field::User | Field::Group | Field::GroupSequence | Field::Ttl)
}

/// Sets a property to a part of the text. Drops one that lies beyond 64 KiB, which a span cannot
/// address.
fn set(properties: &mut Properties, property: Property, at: usize, value: &[u8]) {
    if let Some(span) = Span::new(at, value.len()) {
        properties.set(property, span);
    }
}

fn number<T: TryFrom<u64>>(digits: &[u8]) -> Option<T> {
    parse_u64(digits).and_then(|number| T::try_from(number).ok())
}

/// A time to live in milliseconds: seconds, or a duration as Go writes it. `None` for a message that stays, and for any
/// other text, which JetStream refuses.
fn ttl_ms(value: &[u8]) -> Option<u32> {
    let ms = match parse_u64(value) {
        Some(seconds) => u128::from(seconds) * 1000,
        None => Nanos::parse(str::from_utf8(value).ok()?)?.duration().as_millis(),
    };
    u32::try_from(ms).ok()
}

/// Returns the reader for an origin of [`SOLE_ORIGINS`]; for any other origin it finds no headers.
pub fn header_reader(origin: OriginId) -> &'static dyn HeaderReader {
    SOLE_ORIGINS.form(origin).map_or(&NoHeaders, reader_of_form)
}

/// Returns the reader for a form of header block; for an unknown form it finds no headers.
pub fn reader_of_form(form: u8) -> &'static dyn HeaderReader {
    match form {
        PLAIN => &NatsHeaders { has_block: false },
        HEADERS => &NatsHeaders { has_block: true },
        _ => &NoHeaders,
    }
}

/// Reads the user headers of a NATS message; all of them are text.
#[derive(Debug)]
struct NatsHeaders {
    has_block: bool,
}

impl HeaderReader for NatsHeaders {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        if !self.has_block {
            return;
        }
        // The reply subject has no line end, so `Headers` skips it along with the version line.
        for (name, value) in Headers::new(text) {
            if is_of_user(name) {
                visit(Cow::Borrowed(name), Value::text(value));
            }
        }
    }

    fn header<'t>(&self, text: &'t [u8], name: &[u8]) -> Option<Value<'t>> {
        if !self.has_block || !is_of_user(name) {
            return None;
        }
        Headers::new(text).find(|(known, _)| *known == name).map(|(_, value)| Value::text(value))
    }

    fn is_typed(&self) -> bool {
        false
    }

    fn reply_address<'t>(&self, message: &MessageView<'t>) -> Option<AddressParts<'t>> {
        message.property(Property::ReplyTo).map(address)
    }

    fn body<'t>(&self, message: &MessageView<'t>) -> Cow<'t, [u8]> {
        match message.properties.is_count {
            false => Cow::Borrowed(message.body),
            true => Cow::Owned(counter::body(message.body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_wherever_the_text_is() {
        let block = b"NATS/1.0\r\ncorrelation-id: 7\r\nA: b\r\nNats-Msg-Id:x \r\npriority: 9\r\n\
                      expiration: 1000\r\ntimestamp: 12\r\nA: c\r\ncontent-type:\r\nuser-id: you\r\n\
                      user-id: me\r\nuser-id: them\r\ncorrelation-id: 8\r\npriority: 8\r\n\r\n";
        for reply in [None, Some(&b"_INBOX.1"[..])] {
            let publish = Publish { subject: b"s", reply, headers: Some(block), payload: b"" };
            let mut scratch = Vec::new();
            let ReadHeaders { properties, text, .. } = read(&publish, SOLE_ORIGINS, b"me", &mut scratch);
            let message = MessageView { properties: &properties, text, body: b"" };
            for (property, expected) in [
                (Property::ReplyTo, reply),
                (Property::CorrelationId, Some(&b"7"[..])),
                (Property::MessageId, Some(b"x")),
                (Property::ContentType, None),
                (Property::UserId, Some(b"me")),
            ] {
                assert_eq!(message.property(property), expected, "{property:?}");
            }
            assert_eq!(
                (properties.priority, properties.expiration_ms, properties.timestamp),
                (Some(9), Some(1000), Some(12))
            );
            assert_eq!(super::block(&message), block);
            let mut user = Vec::new();
            header_reader(properties.origin).visit_headers(text, &mut |name, value| user.push((name, value)));
            let expected = [("A", "b"), ("A", "c")];
            let expected =
                expected.map(|(name, value)| (Cow::from(name.as_bytes()), Value::text(value.as_bytes())));
            assert_eq!(user, expected);
            let value = |name: &[u8]| header_reader(properties.origin).header(text, name);
            assert_eq!((value(b"A"), value(b"priority"), value(b"B")), (Some(Value::text(b"b")), None, None));
        }
    }

    #[test]
    fn the_last_message_of_a_group_is_known_by_its_number() {
        for (headers, expected) in [
            ("JMSXGroupID: g\r\nJMSXGroupSeq: -1\r\n", true),
            ("JMSXGroupSeq: -1\r\nJMSXGroupID: g\r\nJMSXGroupSeq: 1\r\n", true),
            ("JMSXGroupID: g\r\nJMSXGroupSeq: 1\r\nJMSXGroupSeq: -1\r\n", false),
            ("JMSXGroupSeq: -1\r\n", false),
        ] {
            let block = format!("NATS/1.0\r\n{headers}\r\n");
            let publish =
                Publish { subject: b"s", reply: None, headers: Some(block.as_bytes()), payload: b"" };
            let mut scratch = Vec::new();
            let ReadHeaders { properties, text, .. } = read(&publish, SOLE_ORIGINS, b"me", &mut scratch);
            assert_eq!(properties.has(Property::GroupEnd), expected, "{headers}");
            let mut count = 0;
            header_reader(properties.origin).visit_headers(text, &mut |_, _| count += 1);
            assert_eq!(count, headers.lines().count(), "they stay headers of users");
        }
    }

    #[test]
    fn what_is_no_block_or_no_number_harms_nobody() {
        for block in ["abc", "NATS/1.0\r\npriority: 256\r\nexpiration: -1\r\ntimestamp: x\r\n\r\n"] {
            let publish =
                Publish { subject: b"s", reply: None, headers: Some(block.as_bytes()), payload: b"" };
            let mut scratch = Vec::new();
            let ReadHeaders { properties, text, .. } = read(&publish, SOLE_ORIGINS, b"me", &mut scratch);
            assert_eq!(properties, Properties::new(SOLE_ORIGINS.origin(HEADERS)));
            assert_eq!(text, block.as_bytes());
        }
    }

    #[test]
    fn a_reply_subject_stands_for_an_address() {
        for (reply, exchange, key) in
            [("_INBOX.1", "amq.topic", "_INBOX.1"), ("imori.queue.a%20b", "", "a b")]
        {
            let publish =
                Publish { subject: b"s", reply: Some(reply.as_bytes()), headers: None, payload: b"" };
            let mut scratch = Vec::new();
            let ReadHeaders { properties, text, .. } = read(&publish, SOLE_ORIGINS, b"me", &mut scratch);
            let message = MessageView { properties: &properties, text, body: b"" };
            let found = header_reader(properties.origin).reply_address(&message).unwrap();
            assert_eq!((&*found.0, &*found.1), (exchange.as_bytes(), key.as_bytes()), "{reply}");
        }
    }
}
