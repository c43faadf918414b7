//! Declarations of a queue that differ from the queue that is there: RabbitMQ's words for both.

use std::borrow::Cow;
use std::time::Duration;

use imori_core::message::Value;
use imori_core::name::Name;
use imori_core::queue::{Overflow, QueueSettings};
use imori_core::route::Arguments;

use crate::codec::methods::queue;
use crate::codec::table::FieldValue;
use crate::commands::arguments::{inequivalent, shown_arguments, type_name};
use crate::protocol_error::ProtocolError;

/// The exception for a declaration that asks for `asked`, where a queue has the settings `current`. `property` is what
/// [`QueueSettings::difference`] calls the first difference.
#[cold]
pub(crate) fn inequivalent_queue(
    declare: &queue::Declare<'_>,
    (asked, current): (&QueueSettings, &QueueSettings),
    property: &str,
    name: &Name,
    vhost: &Name,
) -> ProtocolError {
    let flags = match property {
        "durable" => Some((asked.is_durable, current.is_durable)),
        "auto_delete" => Some((asked.is_auto_delete, current.is_auto_delete)),
        _ => None,
    };
    if let Some((received, current)) = flags {
        let (received, current) = (format!("'{received}'"), format!("'{current}'"));
        return inequivalent(property, "queue", name, vhost, &received, &current);
    }
    let property = match property {
        "arguments" => first_difference(&asked.others, &current.others),
        known => Cow::Borrowed(known),
    };
    let received = declare.arguments.find(&property);
    let (received, current) = shown_arguments(received.map(typed), shown(current, &property));
    inequivalent(&property, "queue", name, vhost, &received, &current)
}

/// A value that a client sent, and the name of its type.
fn typed(field: FieldValue<'_>) -> (String, &'static str) {
    (text_of(&crate::header_block::value(field)), type_name(field))
}

fn text_of(value: &Value<'_>) -> String {
    match value {
        Value::Text(bytes) => bytes.escape_ascii().to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

/// The first name that is in one list and not with an equal value in the other.
fn first_difference(one: &Arguments, other: &Arguments) -> Cow<'static, str> {
    let lacks = |list: &Arguments, entry: &(Name, Value<'static>)| !list.entries().contains(entry);
    let missing = one.entries().iter().find(|entry| lacks(other, entry));
    let found = missing.or_else(|| other.entries().iter().find(|entry| lacks(one, entry)));
    found.map_or(Cow::Borrowed("arguments"), |(name, _)| Cow::Owned(name.to_string()))
}

/// A property of a queue as an argument, and the name of the type that most clients send; `None` where it is not set.
fn shown(settings: &QueueSettings, property: &str) -> Option<(String, &'static str)> {
    let kind = |number: u64| if i32::try_from(number).is_ok() { "signedint" } else { "long" };
    let number = |number: Option<u64>| number.map(|number| (number.to_string(), kind(number)));
    let ms = |time: Option<Duration>| number(time.map(|time| time.as_millis() as u64));
    let text = |text: &str| Some((text.to_string(), "longstr"));
    let name = |name: &Name| text(&name.to_string());
    match property {
        "x-expires" => ms(settings.expires),
        "x-message-ttl" => ms(settings.message_ttl),
        "x-max-length" => number(settings.length_max),
        "x-max-length-bytes" => number(settings.length_bytes_max),
        "x-overflow" => match settings.overflow {
            Overflow::DropHead => None,
            Overflow::RejectPublish => text("reject-publish"),
            Overflow::RejectPublishDeadLetter => text("reject-publish-dlx"),
        },
        "x-dead-letter-exchange" => settings.dead_letter.as_ref().and_then(|target| name(&target.exchange)),
        "x-dead-letter-routing-key" => {
            settings.dead_letter.as_ref().and_then(|target| name(target.routing_key.as_ref()?))
        }
        "x-max-priority" => number(settings.priority_max.map(u64::from)),
        "x-delivery-limit" => number(settings.delivery_limit.map(u64::from)),
        "x-dedup-window" => ms(settings.dedup_window),
        "x-single-active-consumer" => settings.is_single_active.then(|| ("true".to_string(), "bool")),
        "x-level" => settings.level.and_then(|level| text(level.as_str())),
        other => {
            let entries = settings.others.entries();
            let (_, value) = entries.iter().find(|(name, _)| name.as_bytes() == other.as_bytes())?;
            let kind = match value {
                Value::Text(_) => "longstr",
                Value::Bool(_) => "bool",
                _ => "signedint",
            };
            Some((text_of(value), kind))
        }
    }
}
