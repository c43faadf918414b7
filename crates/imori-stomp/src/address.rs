//! Destinations, as users of RabbitMQ know them, and the addresses that they stand for.
//!
//! A slash within a name is written `%2F`. RabbitMQ writes `%25` and others into the destination of a MESSAGE
//! but reads only `%2F` back. Here every `%XX` is read back, so that the destination of a MESSAGE always
//! works in a SEND. A `%` that begins no two hexadecimal digits is itself.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

use crate::codec::error::Excerpt;
use crate::codec::escape::Escaping;
use crate::limits::SUBJECT_BYTES_MAX;

/// The exchange behind `/topic/`.
pub const TOPIC_EXCHANGE: &[u8] = b"amq.topic";

/// The meaning of a `destination` or `reply-to` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination<'a> {
    /// `/queue/NAME` or just `NAME`: a queue that SEND and SUBSCRIBE declare.
    Queue(Cow<'a, [u8]>),
    /// `/amq/queue/NAME`: a queue that must exist.
    AmqQueue(Cow<'a, [u8]>),
    /// `/exchange/NAME` or `/exchange/NAME/KEY`: an exchange that must exist.
    Exchange {
        /// The exchange.
        exchange: Cow<'a, [u8]>,
        /// The subject of a SEND, the pattern of a SUBSCRIBE.
        key: Option<Cow<'a, [u8]>>,
    },
    /// `/topic/PATTERN`: the topic exchange.
    Topic(Cow<'a, [u8]>),
    /// `/temp-queue/NAME`: an inbox of this connection, only in `reply-to`.
    TempQueue(Cow<'a, [u8]>),
    /// `/reply-queue/ANY`: an address that the broker gave out; slashes and `%` are part of it.
    ReplyQueue(&'a [u8]),
}

impl<'a> Destination<'a> {
    /// Reads a destination, escapes of the header already replaced.
    pub fn parse(text: &'a [u8]) -> Result<Self, InvalidDestination> {
        if let Some(rest) = text.strip_prefix(b"/queue/") {
            return Ok(Self::Queue(name(text, rest)?));
        }
        if let Some(rest) = text.strip_prefix(b"/topic/") {
            return Ok(Self::Topic(name(text, rest)?));
        }
        if let Some(rest) = text.strip_prefix(b"/reply-queue/") {
            // Replies return to what they came with, so nothing in it is decoded.
            check_len(text, rest)?;
            return Ok(Self::ReplyQueue(rest));
        }
        if let Some(rest) = text.strip_prefix(b"/temp-queue/") {
            return Ok(Self::TempQueue(name(text, rest)?));
        }
        if let Some(rest) = text.strip_prefix(b"/exchange/") {
            return exchange(text, rest);
        }
        if let Some(rest) = text.strip_prefix(b"/amq/queue/") {
            return Ok(Self::AmqQueue(name(text, rest)?));
        }
        if memchr(b'/', text).is_none() {
            return Ok(Self::Queue(name(text, text)?));
        }
        match text {
            b"/queue" | b"/topic" | b"/reply-queue" | b"/temp-queue" | b"/exchange" | b"/amq/queue" => {
                Err(name_missing(text))
            }
            _ => Err(InvalidDestination::Unknown { destination: Excerpt::new(text) }),
        }
    }

    /// Returns the exchange, where empty is the default one, and the subject that a SEND goes to.
    ///
    /// None for a temp-queue, which nobody sends to by that name.
    pub fn address(&self) -> Option<(&[u8], &[u8])> {
        match self {
            Self::Queue(name) | Self::AmqQueue(name) => Some((b"", name)),
            Self::ReplyQueue(name) => Some((b"", name)),
            Self::Topic(subject) => Some((TOPIC_EXCHANGE, subject)),
            Self::Exchange { exchange, key } => Some((exchange, key.as_deref().unwrap_or_default())),
            Self::TempQueue(_) => None,
        }
    }
}

/// Appends the destination of a MESSAGE that was published to an exchange with a subject.
///
/// A destination always has a form, so the result is true, as for other values of headers.
pub fn push_destination(escaping: Escaping, out: &mut Vec<u8>, exchange: &[u8], subject: &[u8]) -> bool {
    match exchange {
        b"" => out.extend_from_slice(b"/queue/"),
        TOPIC_EXCHANGE => out.extend_from_slice(b"/topic/"),
        _ => {
            out.extend_from_slice(b"/exchange/");
            push_part(escaping, out, exchange);
            if subject.is_empty() {
                return true;
            }
            out.push(b'/');
        }
    }
    push_part(escaping, out, subject);
    true
}

/// Why a destination stands for nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidDestination {
    /// The destination begins with no known prefix.
    Unknown {
        /// The destination.
        destination: Excerpt,
    },
    /// Nothing stands after the prefix.
    NameMissing {
        /// The destination.
        destination: Excerpt,
        /// A whole destination of its kind.
        form: &'static str,
    },
    /// A slash stands within the name.
    SlashInName {
        /// The destination.
        destination: Excerpt,
    },
    /// Other destinations follow behind commas.
    Several {
        /// The destination.
        destination: Excerpt,
    },
    /// A name or subject is longer than allowed.
    TooLong {
        /// The destination.
        destination: Excerpt,
    },
}

impl fmt::Display for InvalidDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { destination } => write!(
                f,
                "unknown destination `{destination}`; use one of `/queue/NAME`, `/topic/PATTERN`, \
                 `/exchange/NAME/KEY`, `/amq/queue/NAME`, `/reply-queue/NAME` or, in reply-to, \
                 `/temp-queue/NAME`"
            ),
            Self::NameMissing { destination, form } => {
                write!(f, "destination `{destination}` has no name; write it as `{form}`")
            }
            Self::SlashInName { destination } => {
                write!(f, "destination `{destination}` has a slash in a name; write it as `%2F`")
            }
            Self::Several { destination } => write!(
                f,
                "destination `{destination}` is a list; write a frame for each, or bind queues to one exchange"
            ),
            Self::TooLong { destination } => write!(
                f,
                "destination `{destination}` has a name over {SUBJECT_BYTES_MAX} bytes; use a shorter one"
            ),
        }
    }
}

impl std::error::Error for InvalidDestination {}

fn exchange<'a>(text: &'a [u8], rest: &'a [u8]) -> Result<Destination<'a>, InvalidDestination> {
    let Some(slash) = memchr(b'/', rest) else {
        return Ok(Destination::Exchange { exchange: name(text, rest)?, key: None });
    };
    let (exchange, key) = rest.split_at(slash);
    let key = key.get(1..).unwrap_or_default();
    // `/exchange/NAME/` has a key, the empty one.
    let key = if key.is_empty() { Cow::Borrowed(key) } else { name(text, key)? };
    Ok(Destination::Exchange { exchange: name(text, exchange)?, key: Some(key) })
}

/// Decodes one part of a destination, which may not be empty.
fn name<'a>(text: &[u8], part: &'a [u8]) -> Result<Cow<'a, [u8]>, InvalidDestination> {
    let name = match memchr2(b'/', b'%', part) {
        None => Cow::Borrowed(part),
        // As ActiveMQ has it: `/queue/a,/queue/b`.
        Some(_) if part.windows(2).any(|pair| pair == b",/") => {
            return Err(InvalidDestination::Several { destination: Excerpt::new(text) });
        }
        Some(_) if memchr(b'/', part).is_some() => {
            return Err(InvalidDestination::SlashInName { destination: Excerpt::new(text) });
        }
        Some(_) => Cow::Owned(percent_decode(part)),
    };
    check_len(text, &name)?;
    Ok(name)
}

fn check_len(text: &[u8], name: &[u8]) -> Result<(), InvalidDestination> {
    match name.len() {
        0 => Err(name_missing(text)),
        1..=SUBJECT_BYTES_MAX => Ok(()),
        _ => Err(InvalidDestination::TooLong { destination: Excerpt::new(text) }),
    }
}

#[cold]
fn name_missing(text: &[u8]) -> InvalidDestination {
    let forms: [(&[u8], &str); 5] = [
        (b"/topic", "/topic/PATTERN"),
        (b"/exchange", "/exchange/NAME/KEY"),
        (b"/amq/queue", "/amq/queue/NAME"),
        (b"/reply-queue", "/reply-queue/NAME"),
        (b"/temp-queue", "/temp-queue/NAME"),
    ];
    let known = forms.into_iter().find(|(prefix, _)| text.starts_with(prefix));
    let form = known.map_or("/queue/NAME", |(_, form)| form);
    InvalidDestination::NameMissing { destination: Excerpt::new(text), form }
}

fn percent_decode(part: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(part.len());
    let mut rest = part;
    loop {
        rest = match rest {
            [] => return out,
            [b'%', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                out.push(hex_digit(*high) << 4 | hex_digit(*low));
                after
            }
            [byte, after @ ..] => {
                out.push(*byte);
                after
            }
        };
    }
}

/// Returns the value of a byte that is a hexadecimal digit.
fn hex_digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte & 0x0f) + 9,
    }
}

/// Appends one part of a destination, percent-encoded as in RabbitMQ and escaped as a header.
fn push_part(escaping: Escaping, out: &mut Vec<u8>, part: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    // Without an early exit the loop compares many bytes at once.
    let is_plain = !part.iter().fold(false, |special, byte| {
        special | !matches!(byte, 0x20..=0x7f) | matches!(byte, b'/' | b'%' | b':' | b'\\')
    });
    if is_plain {
        out.extend_from_slice(part);
        return;
    }
    for byte in part {
        match byte {
            b'/' | b'%' | 0..=0x1f | 0x80..=0xff => {
                let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
                out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 0x0f)]);
            }
            // No control character is left that could have no form.
            _ => {
                escaping.push_value(out, &[*byte]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::escape::unescape;

    fn described(destination: &str) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match Destination::parse(destination.as_bytes()) {
            Ok(Destination::Queue(name)) => format!("queue {}", text(&name)),
            Ok(Destination::AmqQueue(name)) => format!("amq queue {}", text(&name)),
            Ok(Destination::Exchange { exchange, key: None }) => format!("exchange {}", text(&exchange)),
            Ok(Destination::Exchange { exchange, key: Some(key) }) => {
                format!("exchange {} key {}", text(&exchange), text(&key))
            }
            Ok(Destination::Topic(subject)) => format!("topic {}", text(&subject)),
            Ok(Destination::TempQueue(name)) => format!("temp queue {}", text(&name)),
            Ok(Destination::ReplyQueue(name)) => format!("reply queue {}", text(name)),
            Err(InvalidDestination::Unknown { .. }) => "unknown".to_string(),
            Err(InvalidDestination::NameMissing { .. }) => "name missing".to_string(),
            Err(InvalidDestination::SlashInName { .. }) => "slash in name".to_string(),
            Err(InvalidDestination::Several { .. }) => "several".to_string(),
            Err(InvalidDestination::TooLong { .. }) => "too long".to_string(),
        }
    }

    #[test]
    fn destinations_mean_what_users_know() {
        for (destination, expected) in [
            ("/queue/orders", "queue orders"),
            ("orders", "queue orders"),
            ("a%2Fb", "queue a/b"),
            ("/queue/a%2Fb", "queue a/b"),
            ("/queue/a%2fb", "queue a/b"),
            ("/queue/50%25", "queue 50%"),
            ("/queue/50%", "queue 50%"),
            ("/queue/50%2", "queue 50%2"),
            ("/queue/%zz%2F", "queue %zz/"),
            ("/queue/%252F", "queue %2F"),
            ("/queue/%C3%BC", "queue ü"),
            ("/queue/ü", "queue ü"),
            ("/queue/a.b c:d", "queue a.b c:d"),
            ("/queue/a/b", "slash in name"),
            ("/queue/a/", "slash in name"),
            ("/queue//a", "slash in name"),
            ("/queue/a,/queue/b", "several"),
            ("/topic/a,/queue/b", "several"),
            ("/queue/a,b", "queue a,b"),
            ("/queue/", "name missing"),
            ("/queue", "name missing"),
            ("/topic", "name missing"),
            ("/topic/", "name missing"),
            ("/topic/a.*.#", "topic a.*.#"),
            ("/topic/a/b", "slash in name"),
            ("/amq/queue/orders", "amq queue orders"),
            ("/amq/queue", "name missing"),
            ("/amq/topic/x", "unknown"),
            ("/exchange/amq.fanout", "exchange amq.fanout"),
            ("/exchange/e/k", "exchange e key k"),
            ("/exchange/e%2F/k%2Fl", "exchange e/ key k/l"),
            ("/exchange/e/", "exchange e key "),
            ("/exchange//k", "name missing"),
            ("/exchange/", "name missing"),
            ("/exchange", "name missing"),
            ("/exchange/e/k/l", "slash in name"),
            ("/temp-queue/rpc", "temp queue rpc"),
            ("/temp-queue/", "name missing"),
            ("/reply-queue/a/b%2Fc", "reply queue a/b%2Fc"),
            ("/reply-queue/", "name missing"),
            ("", "name missing"),
            ("/", "unknown"),
            ("//", "unknown"),
            ("a/b", "unknown"),
            ("/Queue/a", "unknown"),
            ("/queues/a", "unknown"),
            ("/dsub/a", "unknown"),
        ] {
            assert_eq!(described(destination), expected, "{destination}");
        }
    }

    #[test]
    fn name_of_1024_bytes_is_the_longest() {
        for prefix in ["/queue/", "/topic/", "/exchange/", "/exchange/e/", "/amq/queue/", "/reply-queue/", ""]
        {
            assert_ne!(described(&format!("{prefix}{}", "x".repeat(1024))), "too long", "{prefix}");
            assert_eq!(described(&format!("{prefix}{}", "x".repeat(1025))), "too long", "{prefix}");
        }
        assert_ne!(described(&format!("/queue/{}", "%2F".repeat(1024))), "too long");
    }

    #[test]
    fn unknown_destination_lists_the_known_ones() {
        let error = Destination::parse(b"/dsub/a").unwrap_err().to_string();
        assert!(error.starts_with("unknown destination `/dsub/a`; use one of `/queue/NAME`, "), "{error}");
    }

    #[test]
    fn missing_name_is_asked_for_behind_the_prefix_that_was_written() {
        for (destination, form) in [
            ("", "/queue/NAME"),
            ("/queue/", "/queue/NAME"),
            ("/topic/", "/topic/PATTERN"),
            ("/topic", "/topic/PATTERN"),
            ("/exchange//k", "/exchange/NAME/KEY"),
            ("/amq/queue/", "/amq/queue/NAME"),
        ] {
            let error = Destination::parse(destination.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("destination `{destination}` has no name; write it as `{form}`"));
        }
    }

    #[test]
    fn destination_of_a_message_is_written() {
        for (exchange, subject, expected) in [
            ("", "orders", "/queue/orders"),
            ("", "a/b%", "/queue/a%2Fb%25"),
            ("", "ü\n\0\x7f", "/queue/%C3%BC%0A%00\x7f"),
            ("amq.topic", "a.b", "/topic/a.b"),
            ("amq.topic", "a:b\\c", "/topic/a\\cb\\\\c"),
            ("amq.topic", "", "/topic/"),
            ("amq.fanout", "", "/exchange/amq.fanout"),
            ("e/", "k/l", "/exchange/e%2F/k%2Fl"),
        ] {
            let mut out = Vec::new();
            assert!(push_destination(Escaping::V12, &mut out, exchange.as_bytes(), subject.as_bytes()));
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn destination_of_a_message_leads_back(exchange: Vec<u8>, subject: Vec<u8>) {
            if exchange.is_empty() && subject.is_empty() {
                return Ok(());
            }
            let mut out = Vec::new();
            push_destination(Escaping::V11, &mut out, &exchange, &subject);
            let text = unescape(&out);
            let destination = Destination::parse(&text).unwrap();
            proptest::prop_assert_eq!(destination.address(), Some((&exchange[..], &subject[..])));
        }

        #[test]
        fn any_destination_is_read_or_refused(text: Vec<u8>) {
            let _ = Destination::parse(&text);
        }
    }
}
