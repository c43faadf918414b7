//! Arguments of declarations and bindings: values of AMQP 1.0 become settings.

use std::time::Duration;

use imori_core::message::Value as CoreValue;
use imori_core::name::Name;
use imori_core::queue::{DeadLetterTarget, Overflow, QueueSettings};
use imori_core::route::Arguments;

use crate::codec::map::MapBuf;
use crate::codec::value::{Map, Symbol, Value};
use crate::header_block::core_value;
use crate::management::response::{Response, put};

/// Milliseconds of a time in a queue's arguments: ten years, as in RabbitMQ.
const MILLISECONDS_MAX: i64 = 315_360_000_000;

/// Refuses names that clients do not choose.
pub(super) fn check_name(name: &str) -> Result<(), Response> {
    let why = match () {
        () if name.is_empty() => "a queue or exchange without a name cannot be declared; name it",
        () if name.contains(['\r', '\n']) => "a name has no line end; leave it out",
        () if name.starts_with("amq.") => "names that begin with `amq.` are the broker's own; use another",
        () => return Ok(()),
    };
    Err(Response::refused(if name.starts_with("amq.") { 403 } else { 400 }, why))
}

/// A field of a map, by its name of text or a symbol.
pub(super) fn field<'a>(map: Map<'a>, name: &str) -> Option<Value<'a>> {
    map.find(name).filter(|value| *value != Value::Null)
}

/// A truth value, or what it is where it is absent.
pub(super) fn flag(map: Map<'_>, name: &str, absent: bool) -> Result<bool, Response> {
    match field(map, name) {
        None => Ok(absent),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a truth value"))),
    }
}

/// A text.
pub(super) fn text<'a>(map: Map<'a>, name: &str) -> Result<Option<&'a str>, Response> {
    match field(map, name) {
        None => Ok(None),
        Some(Value::String(text) | Value::Symbol(Symbol(text))) => Ok(Some(text)),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a text"))),
    }
}

/// A map within a map; none is an empty one.
pub(super) fn map<'a>(outer: Map<'a>, name: &str) -> Result<Map<'a>, Response> {
    match field(outer, name) {
        None => Ok(Map::EMPTY),
        Some(Value::Map(map)) => Ok(map),
        Some(_) => Err(Response::refused(400, format_args!("`{name}` is not a map"))),
    }
}

fn number(map: Map<'_>, name: &str, (min, max): (i64, i64)) -> Result<Option<i64>, Response> {
    let Some(value) = field(map, name) else { return Ok(None) };
    let number = match core_value(value) {
        CoreValue::Int(number) => Some(number),
        CoreValue::Uint(number) => i64::try_from(number).ok(),
        _ => None,
    };
    match number.filter(|number| (min..=max).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(Response::refused(400, format_args!("`{name}` is not a number from {min} to {max}"))),
    }
}

fn milliseconds(map: Map<'_>, name: &str, min: i64) -> Result<Option<Duration>, Response> {
    let number = number(map, name, (min, MILLISECONDS_MAX))?;
    Ok(number.map(|number| Duration::from_millis(number.unsigned_abs())))
}

/// The settings of a queue by RabbitMQ's arguments. One that has no effect on one node is passed over.
pub(super) fn queue_settings(
    arguments: Map<'_>,
    declared: &QueueSettings,
) -> Result<QueueSettings, Response> {
    let kind = match text(arguments, "x-queue-type")? {
        None | Some("classic" | "") => imori_core::policy::QueueKind::Classic,
        Some("quorum") => imori_core::policy::QueueKind::Quorum,
        Some(other) => {
            let text =
                format_args!("unsupported queue type '{}'; use classic or quorum", other.escape_debug());
            return Err(Response::refused(400, text));
        }
    };
    let is_quorum = kind == imori_core::policy::QueueKind::Quorum;
    if is_quorum && (!declared.is_durable || declared.is_auto_delete || declared.exclusive_to.is_some()) {
        let text = "a quorum queue is durable, and neither exclusive nor deleted by itself";
        return Err(Response::refused(400, text));
    }
    let overflow = match text(arguments, "x-overflow")? {
        None | Some("drop-head") => Overflow::DropHead,
        Some("reject-publish") => Overflow::RejectPublish,
        Some("reject-publish-dlx") => Overflow::RejectPublishDeadLetter,
        Some(_) => return Err(Response::refused(400, "`x-overflow` is none of RabbitMQ's")),
    };
    let exchange = text(arguments, "x-dead-letter-exchange")?.map(Name::from);
    let routing_key = text(arguments, "x-dead-letter-routing-key")?.map(Name::from);
    let delivery_limit = number(arguments, "x-delivery-limit", (-1, u32::MAX.into()))?;
    let natural = (0, i64::MAX);
    let type_noted = is_quorum.then(|| (Name::from("x-queue-type"), CoreValue::text(b"quorum").into_owned()));
    Ok(QueueSettings {
        expires: milliseconds(arguments, "x-expires", 1)?,
        message_ttl: milliseconds(arguments, "x-message-ttl", 0)?,
        length_max: number(arguments, "x-max-length", natural)?.map(i64::unsigned_abs),
        length_bytes_max: number(arguments, "x-max-length-bytes", natural)?.map(i64::unsigned_abs),
        overflow,
        dead_letter: exchange.map(|exchange| DeadLetterTarget { exchange, routing_key }),
        priority_max: number(arguments, "x-max-priority", (0, 255))?
            .and_then(|max| u8::try_from(max).ok())
            .filter(|max| *max > 0),
        delivery_limit: delivery_limit.map_or(kind.delivery_limit(), |limit| u32::try_from(limit).ok()),
        is_single_active: flag(arguments, "x-single-active-consumer", false)?,
        others: Arguments::new(type_noted),
        ..declared.clone()
    })
}

/// The arguments by which a queue with these settings is declared.
pub(super) fn of_settings(settings: &QueueSettings) -> MapBuf {
    let mut map = MapBuf::new();
    let mut number = |name, value: Option<u64>| {
        if let Some(value) = value {
            put(&mut map, name, Value::Ulong(value));
        }
    };
    let millis = |time: Option<Duration>| time.and_then(|time| u64::try_from(time.as_millis()).ok());
    number("x-expires", millis(settings.expires));
    number("x-message-ttl", millis(settings.message_ttl));
    number("x-max-length", settings.length_max);
    number("x-max-length-bytes", settings.length_bytes_max);
    number("x-max-priority", settings.priority_max.map(u64::from));
    if settings.is_single_active {
        put(&mut map, "x-single-active-consumer", Value::Bool(true));
    }
    let overflow = match settings.overflow {
        Overflow::DropHead => None,
        Overflow::RejectPublish => Some("reject-publish"),
        Overflow::RejectPublishDeadLetter => Some("reject-publish-dlx"),
    };
    let mut text = |name, value: Option<&str>| {
        if let Some(value) = value {
            put(&mut map, name, Value::String(value));
        }
    };
    text("x-overflow", overflow);
    if let Some(target) = &settings.dead_letter {
        text("x-dead-letter-exchange", Some(&target.exchange.to_string()));
        text("x-dead-letter-routing-key", target.routing_key.as_ref().map(Name::to_string).as_deref());
    }
    text("x-queue-type", is_quorum(settings).then_some("quorum"));
    map
}

/// Tells whether a queue was declared as one of quorums.
pub(super) fn is_quorum(settings: &QueueSettings) -> bool {
    settings.others.entries().iter().any(|(name, value)| {
        name.as_bytes() == b"x-queue-type" && matches!(value, CoreValue::Text(text) if &**text == b"quorum")
    })
}

/// The arguments of a binding.
pub(super) fn of_binding(map: Map<'_>) -> Result<Arguments, Response> {
    let mut entries = Vec::new();
    for (key, value) in map.iter() {
        let (Value::String(key) | Value::Symbol(Symbol(key))) = key else {
            return Err(Response::refused(400, "the name of an argument is not a text"));
        };
        entries.push((Name::from(key), core_value(value).into_owned()));
    }
    let arguments = Arguments::new(entries);
    arguments.check().map_err(|error| Response::refused(400, error))?;
    Ok(arguments)
}
