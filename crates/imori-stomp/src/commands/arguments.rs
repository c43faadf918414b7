//! Reads the headers of SUBSCRIBE and SEND that declare a queue.

use imori_core::arguments::{
    ArgumentError, Fault, QUEUE_ARGUMENTS, Takes, check_kind, find_argument, read_arguments,
};
use imori_core::id::ConnectionId;
use imori_core::queue::QueueSettings;

use crate::codec::error::Excerpt;
use crate::codec::frame::Headers;
use crate::codec::number::{parse_bool, parse_u64};
use crate::protocol_error::{PRECONDITION_FAILED, PROCESSING_ERROR, ProtocolError};

/// The queue that the headers of a frame ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Settings of the queue; defaults are those of `/queue/`.
    pub(crate) settings: QueueSettings,
    /// At least one argument was given, so an existing queue must agree with the settings.
    pub(crate) are_explicit: bool,
    /// `durable` or `persistent` is true, which makes the subscription durable.
    pub(crate) asks_durable: bool,
    /// The `auto-delete` header, if given.
    pub(crate) auto_delete: Option<bool>,
}

const INVALID_HEADER: &str = "Invalid header";

/// Whether the header `name` is an argument of a queue.
#[inline]
pub(crate) fn is_argument(name: &[u8]) -> bool {
    match name.first() {
        Some(b'x') => find_argument(name).is_some(),
        Some(b'd') => name == b"durable",
        Some(b'a') => name == b"auto-delete",
        Some(b'e') => name == b"exclusive",
        _ => false,
    }
}

impl Arguments {
    /// Reads the arguments among the headers. On a SUBSCRIBE, `persistent` is a synonym of
    /// `durable`.
    pub(crate) fn read(
        headers: &Headers<'_>,
        connection: ConnectionId,
        is_subscribe: bool,
    ) -> Result<Self, ProtocolError> {
        let durable = flag(headers, "durable")?;
        let persistent = if is_subscribe { flag(headers, "persistent")? } else { None };
        let auto_delete = flag(headers, "auto-delete")?;
        let exclusive = flag(headers, "exclusive")?;
        // ActiveMQ makes an exclusive consumer; here it is the queue that has a single active
        // consumer.
        let alone = if is_subscribe { flag(headers, "activemq.exclusive")? } else { None };
        let declared = QueueSettings {
            is_durable: durable.unwrap_or(true),
            exclusive_to: (exclusive == Some(true)).then_some(connection),
            is_auto_delete: auto_delete.unwrap_or(false),
            ..QueueSettings::default()
        };
        let given = QUEUE_ARGUMENTS.iter().filter_map(|argument| {
            let value = headers.value(argument.name)?;
            Some((argument.name.as_bytes(), argument.takes.parse(&value).into_owned()))
        });
        let mut settings = read_arguments(declared, given).map_err(|error| refused(&error))?;
        if alone == Some(true) && headers.raw("x-single-active-consumer").is_none() {
            settings.is_single_active = true;
        }
        Ok(Self {
            settings,
            are_explicit: alone == Some(true) || headers.iter().any(|header| is_argument(header.name)),
            asks_durable: durable == Some(true) || persistent == Some(true),
            auto_delete,
        })
    }
}

/// Reads a number within `min` and `max`; `None` if the header is absent.
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

/// Refuses a number, with the title that RabbitMQ uses for an unreadable one.
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

/// Reads `true` or `false` in any case; `None` if the header is absent.
pub(crate) fn flag(headers: &Headers<'_>, name: &'static str) -> Result<Option<bool>, ProtocolError> {
    let Some(value) = headers.raw(name) else { return Ok(None) };
    parse_bool(value).map(Some).ok_or_else(|| bad_bool(name, value))
}

#[cold]
pub(crate) fn bad_bool(name: &str, value: &[u8]) -> ProtocolError {
    let text = format_args!("header `{name}` is `{}`; write `true` or `false`", Excerpt::new(value));
    ProtocolError::new(INVALID_HEADER, text)
}

/// Puts the refusal of an argument into words, under RabbitMQ's titles.
#[cold]
fn refused(error: &ArgumentError) -> ProtocolError {
    let name = error.argument;
    match &error.fault {
        Fault::Value { fault, .. } if name == "x-queue-type" => {
            let text = format_args!(
                "unsupported queue type `{fault}`; use `classic`, `quorum` or `stream`, or leave `x-queue-type` out"
            );
            ProtocolError::last(PRECONDITION_FAILED, text)
        }
        Fault::Value { fault, takes } => {
            let is_number = matches!(takes, Takes::Milliseconds { .. } | Takes::Whole { .. });
            let title = if is_number { PROCESSING_ERROR } else { INVALID_HEADER };
            ProtocolError::new(title, format_args!("header `{name}` is `{fault}`; write {takes}"))
        }
        Fault::NoExchange => {
            let text = format_args!(
                "header `{name}` needs `x-dead-letter-exchange`; add it, empty for the default exchange"
            );
            ProtocolError::new(PRECONDITION_FAILED, text)
        }
        Fault::Property(..) => ProtocolError::last(PRECONDITION_FAILED, error),
        Fault::NotOfKind(kind) => {
            let text = format_args!("{} does not have `{name}`; leave the header out", kind.in_words());
            ProtocolError::last(PRECONDITION_FAILED, text)
        }
        Fault::Deduplication | Fault::TooLarge(_) => ProtocolError::new(INVALID_HEADER, error),
    }
}

/// Refuses a quorum queue with properties that RabbitMQ's do not have.
pub(crate) fn check_quorum(settings: &QueueSettings) -> Result<(), ProtocolError> {
    check_kind(settings).map_err(|error| refused(&error))
}
