//! Arguments become settings, and settings arguments.

use super::argument::Argument;
use super::error::{ArgumentError, Fault};
use super::table::{QUEUE_ARGUMENTS, find_argument};
use super::takes::{Taken, shown};
use crate::message::Value;
use crate::name::Name;
use crate::policy::QueueKind;
use crate::queue::QueueSettings;
use crate::route::Arguments;

/// Reads the arguments of a declaration into settings that hold its properties already, such as `is_durable`.
///
/// Of a repeated name the first counts. A name that the table lacks is ignored.
///
/// # Errors
/// The first argument that a queue of this kind cannot have.
pub fn read_arguments<'a>(
    declared: QueueSettings,
    arguments: impl IntoIterator<Item = (&'a [u8], Value<'a>)>,
) -> Result<QueueSettings, ArgumentError> {
    let mut given: [Option<Value<'a>>; QUEUE_ARGUMENTS.len()] = Default::default();
    for (name, value) in arguments {
        // The plugin's clients send `false` where a queue is to be an ordinary one.
        if name == b"x-message-deduplication" && value != Value::Bool(false) {
            let argument = "x-message-deduplication";
            return Err(ArgumentError { argument, fault: Fault::Deduplication });
        }
        let at = QUEUE_ARGUMENTS.iter().position(|argument| argument.name.as_bytes() == name);
        if let Some(place) = at.and_then(|at| given.get_mut(at)).filter(|place| place.is_none())
            && !is_unsaid(name, &value)
        {
            *place = Some(value);
        }
    }
    let mut settings = declared;
    let mut noted = settings.others.entries().to_vec();
    let has_limit = is_given(&given, "x-delivery-limit");
    for (argument, value) in QUEUE_ARGUMENTS.iter().zip(given) {
        let Some(value) = value else { continue };
        let refused = |fault| ArgumentError { argument: argument.name, fault };
        let takes = argument.takes;
        let taken = takes.check(&value).map_err(|fault| refused(Fault::Value { fault, takes }))?;
        // The type of the queue comes first in the table, so that it is known.
        if !argument.kinds.contains(&settings.kind) {
            return Err(refused(Fault::NotOfKind(settings.kind)));
        }
        if argument.name == "x-dead-letter-routing-key" && settings.dead_letter.is_none() {
            return Err(refused(Fault::NoExchange));
        }
        match &argument.setting {
            Some(setting) => (setting.set)(&mut settings, taken),
            None => {
                // Protocols differ in the types of numbers; equal ones are to be equal.
                let kept = match taken {
                    Taken::Number(number) => Value::Int(number),
                    _ => value.into_owned(),
                };
                noted.push((Name::from(argument.name), kept));
            }
        }
    }
    if !has_limit {
        settings.delivery_limit = settings.kind.delivery_limit();
    }
    settings.others = Arguments::new(noted);
    let too_large = |error| ArgumentError { argument: "arguments", fault: Fault::TooLarge(error) };
    settings.others.check().map_err(too_large)?;
    check_kind(&settings)?;
    Ok(settings)
}

fn is_given(given: &[Option<Value<'_>>], name: &str) -> bool {
    given.iter().zip(&QUEUE_ARGUMENTS).any(|(value, argument)| value.is_some() && argument.name == name)
}

/// RabbitMQ takes these for a declaration that does not name a type.
fn is_unsaid(name: &[u8], value: &Value<'_>) -> bool {
    name == b"x-queue-type" && matches!(value, Value::Text(text) if matches!(&**text, b"" | b"undefined"))
}

/// Checks that a quorum queue or a stream is durable, shared and not deleted with its last consumer.
///
/// # Errors
/// [`Fault::Property`].
pub fn check_kind(settings: &QueueSettings) -> Result<(), ArgumentError> {
    let property = match settings.kind {
        QueueKind::Classic => return Ok(()),
        QueueKind::Quorum | QueueKind::Stream if settings.is_auto_delete => "auto-delete",
        QueueKind::Quorum | QueueKind::Stream if settings.exclusive_to.is_some() => "exclusive-owner",
        QueueKind::Quorum | QueueKind::Stream if !settings.is_durable => "non-durable",
        QueueKind::Quorum | QueueKind::Stream => return Ok(()),
    };
    Err(ArgumentError { argument: "x-queue-type", fault: Fault::Property(settings.kind, property) })
}

/// Returns the arguments by which a queue with these settings is declared again.
pub fn arguments_of(settings: &QueueSettings) -> impl Iterator<Item = (&'static str, Value<'static>)> {
    QUEUE_ARGUMENTS.iter().filter_map(|argument| Some((argument.name, argument.value(settings)?)))
}

/// Reads a property that is true or false.
type Flag = fn(&QueueSettings) -> bool;

/// The first property in which a declaration differs from the queue that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The property, by its name in declarations: `durable`, `exclusive`, `auto_delete` or an argument.
    pub property: &'static str,
    /// The value that the declaration gives, if any.
    pub received: Option<String>,
    /// The value that the queue has, if any.
    pub current: Option<String>,
}

/// Returns the first property in which the declaration `received` differs from the queue's own, `current`.
pub fn difference(received: &QueueSettings, current: &QueueSettings) -> Option<Difference> {
    let flags: [(&str, Flag); 3] = [
        ("durable", |settings| settings.is_durable),
        ("exclusive", |settings| settings.exclusive_to.is_some()),
        ("auto_delete", |settings| settings.is_auto_delete),
    ];
    for (property, of) in flags {
        let (received, current) = (of(received), of(current));
        if received != current {
            let (received, current) = (Some(received.to_string()), Some(current.to_string()));
            return Some(Difference { property, received, current });
        }
    }
    // A client of another protocol has made the stream, with settings that have no arguments.
    let is_foreign = current.stream.as_ref().is_some_and(|stream| stream.has_own_declaration);
    for argument in &QUEUE_ARGUMENTS {
        let (received, current) = (argument.value(received), argument.value(current));
        if received != current && !(is_foreign && received.is_none()) {
            let [received, current] = [received, current].map(|value| value.as_ref().map(shown));
            return Some(Difference { property: argument.name, received, current });
        }
    }
    // Arguments of the broker's own queues, which the table lacks.
    let differs = received.others != current.others && !is_foreign;
    differs.then_some(Difference { property: "arguments", received: None, current: None })
}

/// Returns the arguments that have an effect, as a record of the declaration keeps them.
pub(crate) fn recorded(settings: &QueueSettings) -> Arguments {
    let with_effect = QUEUE_ARGUMENTS.iter().filter(|argument| argument.has_effect());
    Arguments::new(
        with_effect.filter_map(|argument| Some((Name::from(argument.name), argument.value(settings)?))),
    )
}

/// Reads what [`recorded`] gave into settings; `None` for an argument or a type that this version does not know.
///
/// Ranges are not checked again: the broker's own queues are not bound by them.
pub(crate) fn read_recorded(declared: QueueSettings, arguments: &Arguments) -> Option<QueueSettings> {
    let mut settings = declared;
    let entry = |argument: &Argument| {
        arguments.entries().iter().find(|(name, _)| name.as_bytes() == argument.name.as_bytes())
    };
    if !arguments.entries().iter().all(|(name, _)| find_argument(name.as_bytes()).is_some()) {
        return None;
    }
    let mut limit = None;
    for argument in &QUEUE_ARGUMENTS {
        let Some((_, value)) = entry(argument) else { continue };
        let taken = argument.takes.read(value)?;
        if argument.name == "x-delivery-limit" {
            limit = Some(taken);
        }
        (argument.setting.as_ref()?.set)(&mut settings, taken);
    }
    if limit.is_none() {
        settings.delivery_limit = settings.kind.delivery_limit();
    }
    Some(settings)
}
