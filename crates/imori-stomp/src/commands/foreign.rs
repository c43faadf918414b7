//! Refuses headers and destinations to which RabbitMQ, ActiveMQ or Artemis give a meaning that
//! Imori lacks.
//!
//! Ignoring one would deliver messages that the client did not ask for, withhold others, or send
//! them at another time. The error says how to reach the same end, if there is a way. Headers that
//! only tune those brokers are accepted.

use std::fmt::Write;

use memchr::memmem;

use crate::address::Destination;
use crate::codec::error::Excerpt;
use crate::codec::frame::Headers;
use crate::codec::number::{parse_bool, parse_u64};
use crate::commands::arguments::is_argument;
use crate::commands::stream::OF_STREAMS;
use crate::protocol_error::ProtocolError;

/// The refused values of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// Every value.
    Any,
    /// `true`, and any value that is not a boolean.
    True,
    /// Every value but 0, which has no effect.
    NotZero,
}

impl Refused {
    fn refuses(self, value: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::True => parse_bool(value) != Some(false),
            Self::NotZero => parse_u64(value) != Some(0),
        }
    }
}

/// The header, its refused values, and the alternative to name in the error.
type Foreign = (&'static str, Refused, &'static str);

/// Unsupported headers of SUBSCRIBE.
const ON_SUBSCRIBE: [Foreign; 5] = [
    ("activemq.retroactive", Refused::True, "a new subscription gets no messages of the past; leave it out"),
    ("activemq.noLocal", Refused::True, NO_LOCAL),
    ("no-local", Refused::True, NO_LOCAL),
    (
        "activemq.maximumPendingMessageLimit",
        Refused::NotZero,
        "nothing is dropped for a slow reader, which is cut at `limits.unsent_bytes`; leave it out",
    ),
    ("transformation", Refused::Any, "a body comes as it was sent; leave it out"),
];

/// Unsupported headers of SEND.
const ON_SEND: [Foreign; 8] = [
    ("AMQ_SCHEDULED_PERIOD", Refused::NotZero, REPEATED),
    ("AMQ_SCHEDULED_REPEAT", Refused::NotZero, REPEATED),
    ("AMQ_SCHEDULED_CRON", Refused::Any, REPEATED),
    ("AMQ_SCHEDULED_TIME", Refused::NotZero, AT_A_TIME),
    ("_AMQ_SCHED_DELIVERY", Refused::NotZero, AT_A_TIME),
    (
        "_AMQ_DUPL_ID",
        Refused::Any,
        "write `amqp-message-id`, and `x-dedup-window` in the frame that declares the queue",
    ),
    ("_AMQ_LVQ_NAME", Refused::Any, "a queue keeps all messages, not the last of each name; leave it out"),
    ("_AMQ_GROUP_ID", Refused::Any, "write `JMSXGroupID`"),
];

const NO_LOCAL: &str = "a subscription gets what its own connection publishes too; leave it out";
const REPEATED: &str = "a message is delivered once; send it again each time, with `x-delay` in milliseconds";
const AT_A_TIME: &str = "write `x-delay`, the milliseconds from now on";

/// Headers of SUBSCRIBE starting with `x-` or `activemq.` that only tune other brokers or are read
/// elsewhere.
const KNOWN: [&str; 16] = [
    "x-queue-name",
    "x-priority",
    "x-dead-letter-strategy",
    "x-queue-mode",
    "x-queue-version",
    "x-queue-leader-locator",
    "x-queue-master-locator",
    "x-quorum-initial-group-size",
    "x-quorum-target-group-size",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "activemq.dispatchAsync",
    "activemq.prefetchSize",
    "activemq.priority",
    "activemq.exclusive",
    "activemq.subscriptionName",
];

/// Maximum number of unknown headers logged for one SUBSCRIBE.
const UNKNOWN_NAMES_MAX: usize = 8;

/// Refuses the first header of a SUBSCRIBE that Imori does not support.
///
/// # Errors
/// An error that names the header and the alternative.
pub(crate) fn refuse_foreign(headers: &Headers<'_>) -> Result<(), ProtocolError> {
    for (name, refused, way_out) in ON_SUBSCRIBE {
        if headers.raw(name).is_some_and(|value| refused.refuses(value)) {
            return Err(unsupported(name, way_out));
        }
    }
    Ok(())
}

/// Whether Imori may have to refuse the header `name` of a SEND.
#[cold]
pub(crate) fn is_foreign_on_send(name: &[u8]) -> bool {
    ON_SEND.iter().any(|(foreign, ..)| foreign.as_bytes() == name)
}

/// Refuses a header of a SEND for which [`is_foreign_on_send`] is true.
///
/// # Errors
/// An error that names the alternative, if the value asks for something unsupported.
#[cold]
pub(crate) fn refuse_foreign_on_send(name: &[u8], value: &[u8]) -> Result<(), ProtocolError> {
    match ON_SEND.iter().find(|(foreign, ..)| foreign.as_bytes() == name) {
        Some((name, refused, way_out)) if refused.refuses(value) => Err(unsupported(name, way_out)),
        _ => Ok(()),
    }
}

#[cold]
fn unsupported(name: &str, way_out: &str) -> ProtocolError {
    let text = format_args!("header `{name}` has no effect here: {way_out}");
    ProtocolError::new("Unsupported header", text)
}

/// Refuses an Artemis routing type that does not match the destination.
///
/// # Errors
/// The types differ, or `kind` is no routing type.
pub(crate) fn check_kind(
    name: &str,
    kind: &[u8],
    destination: &Destination<'_>,
) -> Result<(), ProtocolError> {
    let is_topic = matches!(destination, Destination::Topic(_) | Destination::Exchange { .. });
    if kind == if is_topic { &b"MULTICAST"[..] } else { b"ANYCAST" } {
        return Ok(());
    }
    let text = format_args!(
        "header `{name}` is `{}` and the destination is a {}; write `/topic/SUBJECT` for `MULTICAST`, `/queue/NAME` \
         for `ANYCAST`",
        Excerpt::new(kind),
        if is_topic { "topic" } else { "queue" }
    );
    Err(ProtocolError::new("Unsupported header", text))
}

/// Refuses a SUBSCRIBE to a destination with a special meaning in ActiveMQ; `written` is the
/// header's value.
///
/// # Errors
/// An error that names the alternative, and how to write the text if it is meant as a plain name.
pub(crate) fn refuse_foreign_destination(
    written: &[u8],
    destination: &Destination<'_>,
) -> Result<(), ProtocolError> {
    let has_token = |token: &[u8]| {
        written
            .rsplit(|byte| *byte == b'/')
            .next()
            .is_some_and(|name| name.split(|byte| *byte == b'.').any(|other| other == token))
    };
    let way_out = match destination {
        Destination::Queue(_) | Destination::Topic(_) if memmem::find(written, b"?consumer.").is_some() => {
            "asks for options behind its name; write them as headers, such as `prefetch-count`, and a `?` of the name \
             as `%3F`"
        }
        Destination::Queue(_) if has_token(b">") || has_token(b"*") => {
            "is a pattern, which queues have not; subscribe to each queue or to a topic, and write `>` and `*` of a \
             name as `%3E` and `%2A`"
        }
        Destination::Queue(name)
            if name.starts_with(b"Consumer.") && memmem::find(name, b".VirtualTopic.").is_some() =>
        {
            "is fed by no virtual topic; subscribe to the topic, `/topic/VirtualTopic.…`, with `durable:true` and this \
             name as `x-queue-name`"
        }
        Destination::Topic(_) if has_token(b">") => {
            "has no wildcard `>`; write `#` for any number of words, and `>` of a subject as `%3E`"
        }
        Destination::Topic(subject) if subject.starts_with(b"ActiveMQ.Advisory.") => {
            "has no messages, as there are no advisories; look at the monitor, on port 8222"
        }
        _ => return Ok(()),
    };
    let text = format_args!("destination `{}` {way_out}", Excerpt::new(written));
    Err(ProtocolError::new("Invalid destination", text))
}

/// Returns the unknown headers of a SUBSCRIBE that start with `x-` or `activemq.`, as text for the
/// log.
pub(crate) fn unknown_headers(headers: &Headers<'_>) -> Option<String> {
    let looks_like_one = |name: &[u8]| name.starts_with(b"x-") || name.starts_with(b"activemq.");
    let is_known = |name: &[u8]| {
        is_argument(name)
            || OF_STREAMS.iter().any(|known| known.as_bytes() == name)
            || KNOWN.iter().any(|known| known.as_bytes() == name)
            || ON_SUBSCRIBE.iter().any(|(known, ..)| known.as_bytes() == name)
    };
    let mut text = String::new();
    let unknown = headers.iter().filter(|header| looks_like_one(header.name) && !is_known(header.name));
    for header in unknown.take(UNKNOWN_NAMES_MAX) {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}`{}`", Excerpt::new(header.name));
    }
    (!text.is_empty()).then_some(text)
}
