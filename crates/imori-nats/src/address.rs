//! Maps NATS subjects to Imori addresses and back.
//!
//! A subject belongs to the topic exchange, with two exceptions: `imori.inbox.…` is an inbox of the
//! broker, and `imori.queue.…` is a queue. In a queue's name, `%XX` stands for a byte that a
//! subject cannot contain.

use std::borrow::Cow;

use imori_core::message::{AddressParts, DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
use imori_core::outbound::INBOX_PREFIX;

use crate::codec::words::has_gap;

/// Prefix of the subject of a queue.
pub const QUEUE_PREFIX: &[u8] = b"imori.queue.";

/// Returns the exchange and the subject in it that a NATS subject stands for.
#[inline]
pub fn address(subject: &[u8]) -> AddressParts<'_> {
    if subject.starts_with(b"imori.") {
        if subject.starts_with(INBOX_PREFIX) {
            return (Cow::Borrowed(DEFAULT_EXCHANGE), Cow::Borrowed(subject));
        }
        if let Some(queue) = subject.strip_prefix(QUEUE_PREFIX) {
            return (Cow::Borrowed(DEFAULT_EXCHANGE), unescaped(queue));
        }
    }
    (Cow::Borrowed(TOPIC_EXCHANGE), Cow::Borrowed(subject))
}

/// Returns the NATS subject for an exchange and key; `None` if NATS cannot reach or express it.
pub fn subject(exchange: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let subject = match exchange {
        DEFAULT_EXCHANGE if key.starts_with(INBOX_PREFIX) => key.to_vec(),
        DEFAULT_EXCHANGE => [QUEUE_PREFIX, &escaped(key)].concat(),
        TOPIC_EXCHANGE => key.to_vec(),
        _ => return None,
    };
    is_expressible(&subject).then_some(subject)
}

/// Whether NATS can express the subject: no white space, no control character, no empty token.
///
/// It must also be UTF-8, as some clients close the connection on any other subject.
pub fn is_expressible(subject: &[u8]) -> bool {
    let is_text = subject.is_ascii() || std::str::from_utf8(subject).is_ok();
    is_text && !has_empty_token(subject) && !subject.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}

/// Whether the subject has an empty token. No subscription matches such a subject.
#[inline]
pub fn has_empty_token(subject: &[u8]) -> bool {
    has_gap(subject)
}

/// Whether a message can be sent to the subject: no empty token, no wildcard.
pub fn is_literal(subject: &[u8]) -> bool {
    subject.split(|byte| *byte == b'.').all(|token| !matches!(token, b"" | b"*" | b">"))
}

/// Escapes the name of a queue for use in a subject.
fn escaped(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let is_text = std::str::from_utf8(name).is_ok();
    for (at, byte) in name.iter().enumerate() {
        let is_alone = at == 0 || at + 1 == name.len() || name.get(at + 1) == Some(&b'.');
        let is_escaped = match byte {
            b'.' => is_alone,
            b'%' | b'*' | b'>' | 0x7f => true,
            0x80.. => !is_text,
            _ => *byte <= b' ',
        };
        if is_escaped {
            let digit = |value: u8| b"0123456789ABCDEF".get(usize::from(value)).copied().unwrap_or_default();
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            out.push(*byte);
        }
    }
    out
}

/// Decodes the name of a queue from a subject. A `%` not followed by two hexadecimal digits stands
/// for itself.
fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'%', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        rest = match (byte, after) {
            (b'%', [high, low, later @ ..]) if value(*high).is_some() && value(*low).is_some() => {
                out.push(value(*high).unwrap_or_default() << 4 | value(*low).unwrap_or_default());
                later
            }
            _ => {
                out.push(*byte);
                after
            }
        };
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn subjects_stand_for_addresses() {
        let inbox = format!("imori.inbox.{}", "A".repeat(38));
        for (text, exchange, key) in [
            ("a.b", "amq.topic", "a.b"),
            ("imori", "amq.topic", "imori"),
            ("imori.other", "amq.topic", "imori.other"),
            (inbox.as_str(), "", inbox.as_str()),
            ("imori.queue.orders", "", "orders"),
            ("imori.queue.a.b", "", "a.b"),
            ("imori.queue.a%20b", "", "a b"),
            ("imori.queue.%2E%2A%3E%25", "", ".*>%"),
            ("imori.queue.ü", "", "ü"),
        ] {
            let (in_exchange, at) = address(text.as_bytes());
            assert_eq!((&*in_exchange, &*at), (exchange.as_bytes(), key.as_bytes()), "{text}");
            assert_eq!(subject(exchange.as_bytes(), key.as_bytes()).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(subject(b"", b"\xc3\xbc\xff").as_deref(), Some(&b"imori.queue.%C3%BC%FF"[..]));
        for (text, key) in [("imori.queue.100%", "100%"), ("imori.queue.%zz", "%zz"), ("imori.queue.", "")] {
            assert_eq!(address(text.as_bytes()).1, key.as_bytes(), "{text}");
        }
        for (exchange, key) in [("x", "a"), ("amq.topic", "a b"), ("amq.topic", "a\r\nb"), ("amq.topic", "")]
        {
            assert_eq!(subject(exchange.as_bytes(), key.as_bytes()), None, "{exchange} {key:?}");
        }
    }

    #[test]
    fn subjects_are_checked_as_in_nats_server() {
        for (subject, has_empty, literal) in [
            ("a", false, true),
            ("a.b", false, true),
            ("", true, false),
            (".", true, false),
            ("a.", true, false),
            (".a", true, false),
            ("a..b", true, false),
            ("a.*", false, false),
            (">", false, false),
            ("a*.>b", false, true),
        ] {
            assert_eq!(has_empty_token(subject.as_bytes()), has_empty, "{subject}");
            assert_eq!(is_literal(subject.as_bytes()), literal, "{subject}");
        }
    }

    proptest! {
        #[test]
        fn every_queue_has_a_subject(name in prop::collection::vec(any::<u8>(), 1..20)) {
            let subject = subject(b"", &name).unwrap();
            prop_assert!(is_literal(&subject), "{}", subject.escape_ascii());
            if !name.starts_with(INBOX_PREFIX) {
                prop_assert_eq!(address(&subject), (Cow::Borrowed(&b""[..]), Cow::Borrowed(&name[..])));
            }
        }
    }
}
