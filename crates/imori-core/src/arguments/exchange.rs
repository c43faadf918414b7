//! The kind and the arguments of an exchange's declaration.

use std::fmt;

use super::takes::shown;
use crate::message::Value;
use crate::name::Name;
use crate::route::{ExchangeKind, Settings};

/// The kind of an exchange that delays messages, as RabbitMQ's plugin names it. [`DELAYED_TYPE`] says how it routes.
pub const DELAYED: &str = "x-delayed-message";

/// The argument of a [`DELAYED`] exchange that names the kind by which it routes.
pub const DELAYED_TYPE: &str = "x-delayed-type";

/// The argument that names the exchange for what no binding takes.
pub const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];

/// A declaration of an exchange that cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeError {
    /// No exchange is of this kind.
    UnknownKind(String),
    /// [`ALTERNATE_EXCHANGE`] is not a text: its value.
    AlternateType(String),
    /// An exchange that delays messages does not say how it routes.
    NoDelayedType,
    /// An exchange that delays messages cannot route as another one of its kind.
    NestedDelayedType,
}

/// Reads the kind and the arguments of an exchange into settings that hold its properties already, such as `is_durable`.
///
/// # Errors
/// [`ExchangeError`].
pub fn read_exchange<'a>(
    kind: &[u8],
    declared: &Settings,
    arguments: impl IntoIterator<Item = (&'a [u8], Value<'a>)>,
) -> Result<(ExchangeKind, Settings), ExchangeError> {
    let (mut alternate, mut delayed_type) = (None, None);
    for (name, value) in arguments {
        let place = match name {
            name if name == ALTERNATE_EXCHANGE.as_bytes() => &mut alternate,
            name if name == DELAYED_TYPE.as_bytes() => &mut delayed_type,
            _ => continue,
        };
        place.get_or_insert(value);
    }
    let alternate = match alternate {
        None => None,
        Some(Value::Text(name)) => Some(Name::new(&name)),
        Some(other) => return Err(ExchangeError::AlternateType(shown(&other))),
    };
    let is_delayed = kind == DELAYED.as_bytes();
    let kind = match delayed_type {
        _ if !is_delayed => find_kind(kind)?,
        Some(Value::Text(name)) if *name == *DELAYED.as_bytes() => {
            return Err(ExchangeError::NestedDelayedType);
        }
        Some(Value::Text(name)) => find_kind(&name)?,
        _ => return Err(ExchangeError::NoDelayedType),
    };
    Ok((kind, Settings { alternate, is_delayed, ..declared.clone() }))
}

fn find_kind(name: &[u8]) -> Result<ExchangeKind, ExchangeError> {
    let known = KINDS.into_iter().find(|kind| kind.name().as_bytes() == name);
    known.ok_or_else(|| ExchangeError::UnknownKind(shown(&Value::text(name))))
}

/// Returns the name of the kind by which an exchange is declared.
pub fn declared_kind(kind: ExchangeKind, settings: &Settings) -> &'static str {
    if settings.is_delayed { DELAYED } else { kind.name() }
}

/// Returns the arguments by which an exchange is declared again.
pub fn arguments_of_exchange(
    kind: ExchangeKind,
    settings: &Settings,
) -> impl Iterator<Item = (&'static str, Value<'_>)> {
    let alternate = settings.alternate.as_ref();
    let alternate = alternate.map(|name| (ALTERNATE_EXCHANGE, Value::text(name.as_bytes())));
    let delayed = settings.is_delayed.then(|| (DELAYED_TYPE, Value::text(kind.name().as_bytes())));
    alternate.into_iter().chain(delayed)
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::UnknownKind(kind) => write!(
                f,
                "unknown exchange type '{kind}'; use `direct`, `fanout`, `topic`, `headers` or `{DELAYED}`"
            ),
            ExchangeError::AlternateType(value) => {
                write!(f, "invalid arg '{ALTERNATE_EXCHANGE}': it is `{value}`; write a name")
            }
            ExchangeError::NoDelayedType => {
                write!(
                    f,
                    "an exchange of type `{DELAYED}` needs the argument `{DELAYED_TYPE}`; write `direct`"
                )
            }
            ExchangeError::NestedDelayedType => {
                write!(f, "invalid arg '{DELAYED_TYPE}': it cannot be `{DELAYED}`; write `direct`")
            }
        }
    }
}

impl std::error::Error for ExchangeError {}
