//! Subjects and the addresses that they stand for.
//!
//! A subject is one of the topic exchange, with two exceptions. `imori.inbox.…` is an inbox that the broker
//! made, and `imori.queue.…` a queue. In the name of a queue `%XX` stands for a byte that a subject cannot
//! hold.

use std::borrow::Cow;

use imori_core::message::{AddressParts, DEFAULT_EXCHANGE, TOPIC_EXCHANGE};
use imori_core::outbound::INBOX_PREFIX;

use crate::codec::words::has_gap;

/// How the subject of a queue begins.
pub const QUEUE_PREFIX: &[u8] = b"imori.queue.";

/// The exchange and the subject in it that a subject stands for.
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

/// The subject that stands for a place; `None` for one that NATS cannot reach or name.
pub fn subject(exchange: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let subject = match exchange {
        DEFAULT_EXCHANGE if key.starts_with(INBOX_PREFIX) => key.to_vec(),
        DEFAULT_EXCHANGE => [QUEUE_PREFIX, &escaped(key)].concat(),
        TOPIC_EXCHANGE => key.to_vec(),
        _ => return None,
    };
    is_expressible(&subject).then_some(subject)
}

/// Tells whether a subject has a form in NATS: no white space, no control character, no empty token.
///
/// A subject has to be UTF-8 too: some clients give up their connection at one that is not.
pub fn is_expressible(subject: &[u8]) -> bool {
    let is_text = subject.is_ascii() || std::str::from_utf8(subject).is_ok();
    is_text && !has_empty_token(subject) && !subject.iter().any(|byte| *byte <= b' ' || *byte == 0x7f)
}

/// Tells whether there is nothing before, after or between the dots. Nobody hears such a subject.
#[inline]
pub fn has_empty_token(subject: &[u8]) -> bool {
    has_gap(subject)
}

/// Tells whether a message can be sent to a subject: no empty token, no wildcard.
pub fn is_literal(subject: &[u8]) -> bool {
    subject.split(|byte| *byte == b'.').all(|token| !matches!(token, b"" | b"*" | b">"))
}

/// The name of a queue as the end of a subject.
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

/// The name of a queue from the end of a subject. A `%` that begins no two hexadecimal digits is itself.
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
