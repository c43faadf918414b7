//! The headers of SUBSCRIBE and SEND that say how a queue is declared.

use std::time::Duration;

use imori_core::confirm::Level;
use imori_core::id::ConnectionId;
use imori_core::message::Value;
use imori_core::name::Name;
use imori_core::policy::QueueKind;
use imori_core::queue::{DeadLetterTarget, Overflow, QueueSettings};
use imori_core::route::Arguments as OtherArguments;

use crate::codec::error::Excerpt;
use crate::codec::frame::Headers;
use crate::codec::number::{parse_bool, parse_u64};
use crate::protocol_error::{PRECONDITION_FAILED, PROCESSING_ERROR, ProtocolError};

/// The properties that the headers of a frame ask of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Settings, with the defaults of `/queue/` where nothing is said.
    pub(crate) settings: QueueSettings,
    /// Something is said, so that a queue that exists has to agree.
    pub(crate) are_explicit: bool,
    /// `durable` or `persistent` is true, which makes a durable subscription.
    pub(crate) asks_durable: bool,
    /// `auto-delete`, where it is said.
    pub(crate) auto_delete: Option<bool>,
}

/// Milliseconds of a time in a queue's arguments: what 32 bits hold, as in RabbitMQ.
const MILLISECONDS_MAX: u64 = u32::MAX as u64;

/// Priorities that a queue may tell apart.
const PRIORITY_MAX: u64 = 255;

/// Tells whether a header of this name is about the declaration of a queue.
#[inline]
pub(crate) fn is_argument(name: &[u8]) -> bool {
    match name.first() {
        Some(b'x') => X_ARGUMENTS.iter().any(|argument| argument.as_bytes() == name),
        Some(b'd') => name == b"durable",
        Some(b'a') => name == b"auto-delete",
        Some(b'e') => name == b"exclusive",
        _ => false,
    }
}

const X_ARGUMENTS: [&str; 13] = [
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-expires",
    "x-message-ttl",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-max-priority",
    "x-queue-type",
    "x-delivery-limit",
    "x-dedup-window",
    "x-level",
    "x-single-active-consumer",
];

impl Arguments {
    /// Reads the arguments among headers. On a SUBSCRIBE `persistent` means the same as `durable`.
    pub(crate) fn read(
        headers: &Headers<'_>,
        connection: ConnectionId,
        is_subscribe: bool,
    ) -> Result<Self, ProtocolError> {
        let durable = flag(headers, "durable")?;
        let persistent = if is_subscribe { flag(headers, "persistent")? } else { None };
        let auto_delete = flag(headers, "auto-delete")?;
        let exclusive = flag(headers, "exclusive")?;
        // ActiveMQ's consumers say of themselves what here is said of the queue.
        let alone = if is_subscribe { flag(headers, "activemq.exclusive")? } else { None };
        let is_single_active = flag(headers, "x-single-active-consumer")?;
        let kind = kind(headers)?;
        let milliseconds = |name, min| {
            Ok::<_, ProtocolError>(number(headers, name, min, MILLISECONDS_MAX)?.map(Duration::from_millis))
        };
        let priority_max = number(headers, "x-max-priority", 1, PRIORITY_MAX)?;
        // RabbitMQ 4: minus one is no limit.
        let delivery_limit = match headers.raw("x-delivery-limit") {
            Some(b"-1") => None,
            _ => match number(headers, "x-delivery-limit", 0, u64::from(u32::MAX))? {
                Some(limit) => u32::try_from(limit).ok(),
                None => kind.delivery_limit(),
            },
        };
        let is_quorum = kind == QueueKind::Quorum;
        let settings = QueueSettings {
            is_durable: durable.unwrap_or(true),
            exclusive_to: (exclusive == Some(true)).then_some(connection),
            is_auto_delete: auto_delete.unwrap_or(false),
            // A queue that expires at once could not be used.
            expires: milliseconds("x-expires", 1)?,
            message_ttl: milliseconds("x-message-ttl", 0)?,
            length_max: number(headers, "x-max-length", 0, i64::MAX as u64)?,
            length_bytes_max: number(headers, "x-max-length-bytes", 0, i64::MAX as u64)?,
            overflow: overflow(headers)?,
            dead_letter: dead_letter(headers)?,
            priority_max: priority_max.and_then(|max| u8::try_from(max).ok()),
            delivery_limit,
            dedup_window: milliseconds("x-dedup-window", 0)?.filter(|window| !window.is_zero()),
            is_single_active: is_single_active.or(alone).unwrap_or(false),
            level: level(headers)?,
            others: OtherArguments::new(
                is_quorum.then(|| (Name::from("x-queue-type"), Value::text(b"quorum").into_owned())),
            ),
        };
        check_quorum(&settings)?;
        Ok(Self {
            settings,
            are_explicit: alone == Some(true) || headers.iter().any(|header| is_argument(header.name)),
            asks_durable: durable == Some(true) || persistent == Some(true),
            auto_delete,
        })
    }
}

/// Reads a number between two bounds; none where the header is not there.
///
/// SECURITY LIM-16: no sign, no overflow, no clamping.
pub(crate) fn number(
    headers: &Headers<'_>,
    name: &'static str,
    min: u64,
    max: u64,
) -> Result<Option<u64>, ProtocolError> {
    let Some(value) = headers.raw(name) else { return Ok(None) };
    match parse_u64(value) {
        Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(bad_number(name, value, min, max)),
    }
}

#[cold]
pub(crate) fn bad_number(name: &str, value: &[u8], min: u64, max: u64) -> ProtocolError {
    bad_number_as(PROCESSING_ERROR, name, value, min, max)
}

/// Refuses a number, under the title that RabbitMQ has for one that it cannot read.
#[cold]
pub(crate) fn bad_number_as(
    message: &'static str,
    name: &str,
    value: &[u8],
    min: u64,
    max: u64,
) -> ProtocolError {
    let text = format_args!(
        "header `{name}` is `{}`; write a whole number between {min} and {max}",
        Excerpt::new(value)
    );
    ProtocolError::new(message, text)
}

/// Reads `true` or `false`, in any case; none where the header is not there.
pub(crate) fn flag(headers: &Headers<'_>, name: &'static str) -> Result<Option<bool>, ProtocolError> {
    let Some(value) = headers.raw(name) else { return Ok(None) };
    parse_bool(value).map(Some).ok_or_else(|| bad_bool(name, value))
}

#[cold]
pub(crate) fn bad_bool(name: &str, value: &[u8]) -> ProtocolError {
    let text = format_args!("header `{name}` is `{}`; write `true` or `false`", Excerpt::new(value));
    ProtocolError::new("Invalid header", text)
}

fn kind(headers: &Headers<'_>) -> Result<QueueKind, ProtocolError> {
    match headers.raw("x-queue-type") {
        None | Some(b"classic" | b"undefined" | b"") => Ok(QueueKind::Classic),
        Some(b"quorum") => Ok(QueueKind::Quorum),
        Some(other) => {
            let text = format_args!(
                "unsupported queue type `{}`; use `classic` or `quorum`, or leave `x-queue-type` out",
                Excerpt::new(other)
            );
            Err(ProtocolError::last(PRECONDITION_FAILED, text))
        }
    }
}

/// Refuses a quorum queue with properties that RabbitMQ's have not.
pub(crate) fn check_quorum(settings: &QueueSettings) -> Result<(), ProtocolError> {
    let text = match settings.kind() {
        QueueKind::Classic => return Ok(()),
        QueueKind::Quorum if !settings.is_durable => "a quorum queue is durable; write `durable:true`",
        QueueKind::Quorum if settings.is_auto_delete => {
            "a quorum queue is not deleted with its last consumer; leave `auto-delete` out"
        }
        QueueKind::Quorum if settings.exclusive_to.is_some() => {
            "a quorum queue is not exclusive to a connection; leave `exclusive` out"
        }
        QueueKind::Quorum if settings.priority_max.is_some() => {
            "a quorum queue has no priorities to set; leave `x-max-priority` out"
        }
        QueueKind::Quorum => return Ok(()),
    };
    Err(ProtocolError::last(PRECONDITION_FAILED, text))
}

fn overflow(headers: &Headers<'_>) -> Result<Overflow, ProtocolError> {
    match headers.raw("x-overflow") {
        None | Some(b"drop-head") => Ok(Overflow::DropHead),
        Some(b"reject-publish") => Ok(Overflow::RejectPublish),
        Some(b"reject-publish-dlx") => Ok(Overflow::RejectPublishDeadLetter),
        Some(other) => {
            let text = format_args!(
                "header `x-overflow` is `{}`; write `drop-head`, `reject-publish` or `reject-publish-dlx`",
                Excerpt::new(other)
            );
            Err(ProtocolError::new("Invalid header", text))
        }
    }
}

/// How safe a persistent message in the queue is when it is confirmed.
fn level(headers: &Headers<'_>) -> Result<Option<Level>, ProtocolError> {
    let Some(value) = headers.raw("x-level") else { return Ok(None) };
    match Level::parse(value) {
        Some(level) => Ok(Some(level)),
        None => {
            let text =
                format_args!("header `x-level` is `{}`; write `memory`, `os` or `disk`", Excerpt::new(value));
            Err(ProtocolError::new("Invalid header", text))
        }
    }
}

fn dead_letter(headers: &Headers<'_>) -> Result<Option<DeadLetterTarget>, ProtocolError> {
    let routing_key = headers.value("x-dead-letter-routing-key").map(|key| Name::new(&key));
    match headers.value("x-dead-letter-exchange") {
        Some(exchange) => Ok(Some(DeadLetterTarget { exchange: Name::new(&exchange), routing_key })),
        None if routing_key.is_none() => Ok(None),
        None => {
            let text = "header `x-dead-letter-routing-key` needs `x-dead-letter-exchange`; add it, empty for the \
                        default exchange";
            Err(ProtocolError::new(PRECONDITION_FAILED, text))
        }
    }
}
