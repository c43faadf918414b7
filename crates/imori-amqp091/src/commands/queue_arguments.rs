//! Arguments of a queue's declaration: read by the broker's table, refused in RabbitMQ's words.

use std::fmt::{self, Display};

use imori_core::arguments::{
    ArgumentError, Difference, Fault, Takes, ValueFault, find_argument, read_arguments, shown,
};
use imori_core::id::ConnectionId;
use imori_core::name::Name;
use imori_core::policy::QueueKind;
use imori_core::queue::QueueSettings;

use crate::codec::methods::queue;
use crate::commands::arguments::{inequivalent, shown_arguments, type_name};
use crate::header_block::value;
use crate::protocol_error::{Code, ProtocolError};

/// Returns the settings that a declaration asks for.
///
/// # Errors
/// `PRECONDITION_FAILED` with RabbitMQ's text for the first argument that such a queue cannot have.
pub(crate) fn queue_settings(
    declare: &queue::Declare<'_>,
    name: &str,
    connection: ConnectionId,
    vhost: &Name,
) -> Result<QueueSettings, ProtocolError> {
    let declared = QueueSettings {
        // RabbitMQ: what belongs to a connection is not durable, whatever the client says.
        is_durable: declare.durable && !declare.exclusive,
        exclusive_to: declare.exclusive.then_some(connection),
        is_auto_delete: declare.auto_delete,
        ..QueueSettings::default()
    };
    let arguments = declare.arguments.iter().map(|(name, field)| (name, value(field)));
    let read = read_arguments(declared, arguments);
    let settings = read.map_err(|error| refused(declare, &error, name, vhost))?;
    if settings.kind != QueueKind::Classic && declare.queue.is_empty() {
        let kind = settings.kind.name();
        let text = format_args!("Cannot declare a server-named queue for type rabbit_{kind}_queue");
        return Err(ProtocolError::new(Code::PreconditionFailed, text));
    }
    Ok(settings)
}

#[cold]
fn refused(declare: &queue::Declare<'_>, error: &ArgumentError, queue: &str, vhost: &Name) -> ProtocolError {
    let (argument, queue) = (error.argument, queue.escape_default());
    let field = declare.arguments.find(argument);
    let invalid = |why: fmt::Arguments<'_>| {
        let text = format_args!("invalid arg '{argument}' for queue '{queue}' in vhost '{vhost}'{why}");
        ProtocolError::new(Code::PreconditionFailed, text)
    };
    let because = |why: &dyn Display| invalid(format_args!(": {why}"));
    match &error.fault {
        Fault::Value { fault: ValueFault::Type(_), takes } => {
            let kind = field.map_or("void", type_name);
            match takes {
                Takes::Milliseconds { .. } | Takes::Whole { .. } => {
                    because(&format_args!("\"expected integer, got {kind}\""))
                }
                _ if argument == "x-dead-letter-exchange" => {
                    let text = format_args!(
                        "invalid type '{kind}' for arg '{argument}' in queue '{queue}' in vhost '{vhost}'"
                    );
                    ProtocolError::new(Code::PreconditionFailed, text)
                }
                _ => because(&format_args!("{{unacceptable_type,{kind}}}")),
            }
        }
        Fault::Value { fault: ValueFault::Range(number), .. } if argument == "x-queue-version" => {
            because(&format_args!("\"unsupported queue version '{number}'\""))
        }
        Fault::Value { fault: ValueFault::Range(_), .. } if argument == "x-stream-filter-size-bytes" => {
            // RabbitMQ has two spaces there.
            let text = "Invalid value for  x-stream-filter-size-bytes";
            ProtocolError::new(Code::PreconditionFailed, text)
        }
        Fault::Value { fault: ValueFault::Range(number), .. }
            if *number > 0 && argument == "x-stream-max-segment-size-bytes" =>
        {
            let text = "Exceeded max value for x-stream-max-segment-size-bytes";
            ProtocolError::new(Code::PreconditionFailed, text)
        }
        Fault::Value { fault: ValueFault::Range(number), .. } => {
            let why = match () {
                () if *number > 0 && argument == "x-max-priority" => "max_value_exceeded",
                () if *number > 0 => "value_too_large",
                () if *number == 0 => "value_zero",
                () => "value_negative",
            };
            because(&format_args!("{{{why},{number}}}"))
        }
        Fault::Value { fault: ValueFault::Word(value), takes } => match argument {
            "x-overflow" => because(&"invalid_overflow"),
            "x-queue-type" => because(&format_args!("\"unsupported queue type '{value}'\"")),
            "x-queue-mode" => because(&format_args!("\"unsupported queue mode '{value}'\"")),
            "x-queue-leader-locator" => because(&"invalid_queue_locator_arg"),
            "x-member-placement-tag" => because(&"invalid_member_placement_tag_arg"),
            "x-dead-letter-strategy" => because(&"invalid_dlx_strategy"),
            "x-max-age" => because(&"invalid_max_age"),
            _ => because(&format_args!("write {takes}")),
        },
        Fault::NotOfKind(kind) => invalid(format_args!(" of queue type rabbit_{}_queue", kind.name())),
        Fault::NoExchange => because(&"routing_key_but_no_dlx_defined"),
        Fault::Deduplication => {
            because(&"use x-dedup-window, for which message-id says which messages are equal")
        }
        Fault::Property(_, property) => {
            let text = format_args!("invalid property '{property}' for queue '{queue}' in vhost '{vhost}'");
            ProtocolError::new(Code::PreconditionFailed, text)
        }
        Fault::TooLarge(error) => ProtocolError::new(Code::PreconditionFailed, error),
    }
}

/// The exception for a declaration that differs from the queue that is there.
#[cold]
pub(crate) fn inequivalent_queue(
    declare: &queue::Declare<'_>,
    difference: &Difference,
    name: &Name,
    vhost: &Name,
) -> ProtocolError {
    let Difference { property, received, current } = difference;
    let (received, current) = match find_argument(property.as_bytes()) {
        Some(argument) => {
            // The client may have given the default.
            let received =
                declare.arguments.find(property).map(|field| (shown(&value(field)), type_name(field)));
            let current = current.clone().map(|value| {
                let kind = usual_type(argument.takes, &value);
                (value, kind)
            });
            shown_arguments(received, current)
        }
        None => {
            let quoted = |value: &Option<String>| format!("'{}'", value.as_deref().unwrap_or("none"));
            (quoted(received), quoted(current))
        }
    };
    inequivalent(property, "queue", name, vhost, &received, &current)
}

/// RabbitMQ's name of the type in which most clients send a value.
fn usual_type(takes: Takes, value: &str) -> &'static str {
    match takes {
        Takes::Milliseconds { .. } | Takes::Whole { .. } if value.parse::<i32>().is_ok() => "signedint",
        Takes::Milliseconds { .. } | Takes::Whole { .. } => "long",
        Takes::Flag => "bool",
        Takes::Name | Takes::Words(_) | Takes::Text | Takes::Age | Takes::Anything => "longstr",
    }
}
