//! Arguments of declarations and bindings: fields of a table become settings.

use std::time::Duration;

use imori_core::confirm::Level;
use imori_core::id::ConnectionId;
use imori_core::name::Name;
use imori_core::queue::{DeadLetterTarget, Overflow, QueueSettings};
use imori_core::route::Arguments;

use crate::codec::methods::queue;
use crate::codec::table::{FieldValue, Table};
use crate::header_block::value;
use crate::protocol_error::{Code, ProtocolError};

/// Deliveries of a message in a quorum queue that may fail, where its declaration says nothing: RabbitMQ 4's.
const QUORUM_DELIVERY_LIMIT: u32 = 20;

/// Milliseconds of a time in a queue's arguments: what 32 bits hold, as in RabbitMQ.
const MILLISECONDS_MAX: i64 = u32::MAX as i64;

/// A declaration of a queue, as its arguments are read.
struct Reading<'a> {
    queue: &'a str,
    vhost: &'a Name,
    arguments: Table<'a>,
}

/// The settings that a declaration asks for.
pub(crate) fn queue_settings(
    declare: &queue::Declare<'_>,
    name: &str,
    connection: ConnectionId,
    vhost: &Name,
) -> Result<QueueSettings, ProtocolError> {
    let reading = Reading { queue: name, vhost, arguments: declare.arguments };
    let is_quorum = reading.is_quorum(declare)?;
    let number = |name, min, max| reading.number(name, min, max);
    let milliseconds = |name, min| {
        let number = number(name, min, MILLISECONDS_MAX)?;
        Ok::<_, ProtocolError>(number.map(|number| Duration::from_millis(number.unsigned_abs())))
    };
    let delivery_limit = number("x-delivery-limit", -1, i64::from(u32::MAX))?;
    let default_limit = is_quorum.then_some(QUORUM_DELIVERY_LIMIT);
    Ok(QueueSettings {
        // RabbitMQ: what belongs to a connection is not durable, whatever is said.
        is_durable: declare.durable && !declare.exclusive,
        exclusive_to: declare.exclusive.then_some(connection),
        is_auto_delete: declare.auto_delete,
        expires: milliseconds("x-expires", 1)?,
        message_ttl: milliseconds("x-message-ttl", 0)?,
        length_max: number("x-max-length", 0, i64::MAX)?.map(i64::unsigned_abs),
        length_bytes_max: number("x-max-length-bytes", 0, i64::MAX)?.map(i64::unsigned_abs),
        overflow: reading.overflow()?,
        dead_letter: reading.dead_letter()?,
        priority_max: number("x-max-priority", 0, 255)?
            .and_then(|max| u8::try_from(max).ok())
            .filter(|max| *max > 0),
        // RabbitMQ 4: minus one is no limit.
        delivery_limit: delivery_limit.map_or(default_limit, |limit| u32::try_from(limit).ok()),
        dedup_window: milliseconds("x-dedup-window", 0)?.filter(|window| !window.is_zero()),
        is_single_active: reading.flag("x-single-active-consumer")?,
        level: reading.level()?,
    })
}

impl Reading<'_> {
    #[cold]
    fn invalid(&self, argument: &str, why: impl std::fmt::Display) -> ProtocolError {
        let (queue, vhost) = (self.queue.escape_default(), self.vhost);
        let text = format_args!("invalid arg '{argument}' for queue '{queue}' in vhost '{vhost}': {why}");
        ProtocolError::new(Code::PreconditionFailed, text)
    }

    fn number(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, ProtocolError> {
        let Some(value) = self.arguments.find(name) else { return Ok(None) };
        match integer(value) {
            Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
            Some(number) => Err(self.invalid(name, format_args!("{number} is not between {min} and {max}"))),
            None => Err(self.invalid(name, format_args!("expected integer, got {}", type_name(value)))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&[u8]>, ProtocolError> {
        match self.arguments.find(name) {
            None => Ok(None),
            Some(FieldValue::Text(text)) => Ok(Some(text)),
            Some(other) => {
                Err(self.invalid(name, format_args!("expected a string, got {}", type_name(other))))
            }
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ProtocolError> {
        match self.arguments.find(name) {
            None => Ok(false),
            Some(FieldValue::Bool(flag)) => Ok(flag),
            Some(other) => {
                Err(self.invalid(name, format_args!("expected boolean, got {}", type_name(other))))
            }
        }
    }

    /// A quorum queue is a durable queue with a delivery limit, as there is one node.
    fn is_quorum(&self, declare: &queue::Declare<'_>) -> Result<bool, ProtocolError> {
        match self.text("x-queue-type")? {
            None | Some(b"classic") => Ok(false),
            Some(b"quorum") => {
                let property = match () {
                    () if !declare.durable => "non-durable",
                    () if declare.exclusive => "exclusive",
                    () => return Ok(true),
                };
                let (queue, vhost) = (self.queue.escape_default(), self.vhost);
                let text =
                    format_args!("invalid property '{property}' for queue '{queue}' in vhost '{vhost}'");
                Err(ProtocolError::new(Code::PreconditionFailed, text))
            }
            Some(other) => {
                let why = format_args!("unsupported queue type '{}'", other.escape_ascii());
                Err(self.invalid("x-queue-type", why))
            }
        }
    }

    fn overflow(&self) -> Result<Overflow, ProtocolError> {
        match self.text("x-overflow")? {
            None | Some(b"drop-head") => Ok(Overflow::DropHead),
            Some(b"reject-publish") => Ok(Overflow::RejectPublish),
            Some(b"reject-publish-dlx") => Ok(Overflow::RejectPublishDeadLetter),
            Some(_) => Err(self.invalid("x-overflow", "invalid_overflow")),
        }
    }

    fn dead_letter(&self) -> Result<Option<DeadLetterTarget>, ProtocolError> {
        let routing_key = self.text("x-dead-letter-routing-key")?.map(Name::new);
        match (self.text("x-dead-letter-exchange")?, &routing_key) {
            (Some(exchange), _) => Ok(Some(DeadLetterTarget { exchange: Name::new(exchange), routing_key })),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(self.invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"))
            }
        }
    }

    fn level(&self) -> Result<Option<Level>, ProtocolError> {
        let Some(text) = self.text("x-level")? else { return Ok(None) };
        let level = Level::parse(text);
        level.map(Some).ok_or_else(|| self.invalid("x-level", "write memory, os or disk"))
    }
}

/// The properties of a queue by the names of [`QueueSettings::difference`], as RabbitMQ's texts show them.
pub(crate) fn shown(settings: &QueueSettings, property: &str) -> String {
    let number = |number: Option<u64>| match number {
        Some(number) => format!("the value '{number}' of type 'long'"),
        None => "none".to_string(),
    };
    let ms = |time: Option<Duration>| number(time.map(|time| time.as_millis() as u64));
    let text = |text: &str| format!("the value '{text}' of type 'longstr'");
    match property {
        "durable" => format!("'{}'", settings.is_durable),
        "auto_delete" => format!("'{}'", settings.is_auto_delete),
        "exclusive" => format!("'{}'", settings.exclusive_to.is_some()),
        "x-expires" => ms(settings.expires),
        "x-message-ttl" => ms(settings.message_ttl),
        "x-max-length" => number(settings.length_max),
        "x-max-length-bytes" => number(settings.length_bytes_max),
        "x-overflow" => text(match settings.overflow {
            Overflow::DropHead => "drop-head",
            Overflow::RejectPublish => "reject-publish",
            Overflow::RejectPublishDeadLetter => "reject-publish-dlx",
        }),
        "x-dead-letter-exchange" => match &settings.dead_letter {
            Some(target) => text(&target.exchange.to_string()),
            None => "none".to_string(),
        },
        "x-max-priority" => number(settings.priority_max.map(u64::from)),
        "x-delivery-limit" => number(settings.delivery_limit.map(u64::from)),
        "x-dedup-window" => ms(settings.dedup_window),
        "x-single-active-consumer" => format!("the value '{}' of type 'bool'", settings.is_single_active),
        "x-level" => settings.level.map_or("none".to_string(), |level| text(level.as_str())),
        _ => "none".to_string(),
    }
}

/// The exception for a declaration that differs from what is there.
#[cold]
pub(crate) fn inequivalent(
    property: &str,
    kind: &str,
    name: &Name,
    vhost: &Name,
    received: &str,
    current: &str,
) -> ProtocolError {
    let text = format_args!(
        "inequivalent arg '{property}' for {kind} '{name}' in vhost '{vhost}': received {received} but current is {current}"
    );
    ProtocolError::new(Code::PreconditionFailed, text)
}

/// The arguments of a binding.
pub(crate) fn binding_arguments(arguments: Table<'_>) -> Arguments {
    Arguments::new(arguments.iter().map(|(name, field)| (Name::new(name), value(field).into_owned())))
}

/// A whole number of any type.
pub(crate) fn integer(value: FieldValue<'_>) -> Option<i64> {
    match value {
        FieldValue::I8(number) => Some(number.into()),
        FieldValue::I16(number) => Some(number.into()),
        FieldValue::I32(number) => Some(number.into()),
        FieldValue::I64(number) => Some(number),
        FieldValue::U8(number) => Some(number.into()),
        FieldValue::U16(number) => Some(number.into()),
        FieldValue::U32(number) => Some(number.into()),
        _ => None,
    }
}

/// RabbitMQ's name of the type of a field.
pub(crate) fn type_name(value: FieldValue<'_>) -> &'static str {
    match value {
        FieldValue::Bool(_) => "bool",
        FieldValue::I8(_) => "byte",
        FieldValue::U8(_) => "unsignedbyte",
        FieldValue::I16(_) => "short",
        FieldValue::U16(_) => "unsignedshort",
        FieldValue::I32(_) => "signedint",
        FieldValue::U32(_) => "unsignedint",
        FieldValue::I64(_) => "long",
        FieldValue::F32(_) => "float",
        FieldValue::F64(_) => "double",
        FieldValue::Decimal { .. } => "decimal",
        FieldValue::Timestamp(_) => "timestamp",
        FieldValue::Text(_) => "longstr",
        FieldValue::Bytes(_) => "binary",
        FieldValue::Array(_) => "array",
        FieldValue::Table(_) => "table",
        FieldValue::Void => "void",
    }
}
