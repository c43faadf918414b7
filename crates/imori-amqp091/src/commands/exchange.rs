//! `exchange.declare`, `delete`, `bind` and `unbind`.

use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::route::{BindingKey, ExchangeKind, RouteError, Settings, Syntax};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::methods::exchange;
use crate::codec::table::FieldValue;
use crate::commands::arguments::{binding_arguments, inequivalent, shown_arguments, type_name};
use crate::protocol_error::{Code, ProtocolError};

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];

/// The kind under which an exchange delays messages, and routes them as an argument says: RabbitMQ's plugin.
const DELAYED: &str = "x-delayed-message";

const DELAYED_TYPE: &str = "x-delayed-type";

/// Declares an exchange, or looks whether it is there.
pub(crate) fn declare<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    declare: &exchange::Declare<'_>,
) -> Result<(), ProtocolError> {
    let confirm = if declare.passive {
        refuse_default(declare.exchange)?;
        let found = broker::look_up_exchange(world, &client.actor(), declare.exchange.as_bytes());
        found.map(|_| Confirm::NOW).map_err(|error| client.error(&error))?
    } else {
        make(client, world, declare)?
    };
    if !declare.no_wait {
        client.answer(world, channel, confirm, &exchange::DeclareOk);
    }
    Ok(())
}

/// Makes an exchange, or finds it as it was declared before.
pub(crate) fn make<W: World>(
    client: &Client,
    world: &W,
    declare: &exchange::Declare<'_>,
) -> Result<Confirm, ProtocolError> {
    refuse_default(declare.exchange)?;
    let is_delayed = declare.kind == DELAYED;
    let kind = kind(if is_delayed { delayed_kind(declare)? } else { declare.kind.as_bytes() })?;
    let alternate = match declare.arguments.find("alternate-exchange") {
        None => None,
        Some(FieldValue::Text(name)) => Some(Name::new(name)),
        Some(other) => {
            let text = format_args!(
                "invalid type '{}' for arg 'alternate-exchange' in exchange '{}' in vhost '{}'",
                type_name(other),
                declare.exchange.escape_default(),
                client.vhost_name
            );
            return Err(ProtocolError::new(Code::PreconditionFailed, text));
        }
    };
    let settings = Settings {
        is_durable: declare.durable,
        is_auto_delete: declare.auto_delete,
        is_internal: declare.internal,
        alternate,
        is_delayed,
    };
    let name = declare.exchange.as_bytes();
    broker::declare_exchange(world, &client.actor(), name, kind, settings.clone()).map_err(
        |error| match error {
            BrokerError::Route(RouteError::Differs { exchange, kind: known, settings: current }) => {
                let pairs = facts(kind, &settings).into_iter().zip(facts(known, &current));
                let differing = pairs
                    .map(|((property, new), (_, current))| (property, new, current))
                    .find(|(_, new, current)| new != current);
                let (property, received, current) = differing.unwrap_or_default();
                let (received, current) = if property.contains('-') {
                    let text = |value| Some((value?, "longstr"));
                    shown_arguments(text(received), text(current))
                } else {
                    let quoted = |value: Option<String>| format!("'{}'", value.unwrap_or_default());
                    (quoted(received), quoted(current))
                };
                inequivalent(property, "exchange", &exchange, &client.vhost_name, &received, &current)
            }
            BrokerError::Refused(_) if declare.exchange.starts_with("amq.") => {
                client.error(&RouteError::Reserved(Name::new(name)).into())
            }
            error => client.error(&error),
        },
    )
}

fn kind(name: &[u8]) -> Result<ExchangeKind, ProtocolError> {
    KINDS.into_iter().find(|kind| kind.name().as_bytes() == name).ok_or_else(|| {
        let text = format_args!("unknown exchange type '{}'", name.escape_ascii());
        ProtocolError::new(Code::PreconditionFailed, text)
    })
}

/// The name of the kind by which an exchange routes that delays messages.
fn delayed_kind<'a>(declare: &exchange::Declare<'a>) -> Result<&'a [u8], ProtocolError> {
    let refused = |text: &str| Err(ProtocolError::new(Code::PreconditionFailed, text));
    match declare.arguments.find(DELAYED_TYPE) {
        Some(FieldValue::Text(name)) if name == DELAYED.as_bytes() => {
            refused("Invalid argument, 'x-delayed-message' can't be used for 'x-delayed-type'")
        }
        Some(FieldValue::Text(name)) => Ok(name),
        _ => refused("Invalid argument, 'x-delayed-type' must be an existing exchange type"),
    }
}

/// The properties and arguments of an exchange in the order in which RabbitMQ compares them.
fn facts(kind: ExchangeKind, settings: &Settings) -> [(&'static str, Option<String>); 6] {
    let flag = |is_set: bool| Some(is_set.to_string());
    let name = kind.name().to_string();
    let (kind, delayed_kind) =
        if settings.is_delayed { (DELAYED.to_string(), Some(name)) } else { (name, None) };
    [
        ("type", Some(kind)),
        ("durable", flag(settings.is_durable)),
        ("auto_delete", flag(settings.is_auto_delete)),
        ("internal", flag(settings.is_internal)),
        ("alternate-exchange", settings.alternate.as_ref().map(Name::to_string)),
        (DELAYED_TYPE, delayed_kind),
    ]
}

/// Deletes an exchange; one that is not there is no error.
pub(crate) fn delete<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    delete: &exchange::Delete<'_>,
) -> Result<(), ProtocolError> {
    let confirm = remove(client, world, delete)?;
    if !delete.no_wait {
        client.answer(world, channel, confirm, &exchange::DeleteOk);
    }
    Ok(())
}

/// Takes an exchange away, if it is there.
pub(crate) fn remove<W: World>(
    client: &Client,
    world: &W,
    delete: &exchange::Delete<'_>,
) -> Result<Confirm, ProtocolError> {
    refuse_default(delete.exchange)?;
    if delete.exchange.starts_with("amq.") {
        let text = format_args!(
            "deletion of system exchange '{}' in vhost '{}' not allowed",
            delete.exchange.escape_default(),
            client.vhost_name
        );
        return Err(ProtocolError::new(Code::AccessRefused, text));
    }
    let name = delete.exchange.as_bytes();
    match broker::delete_exchange(world, &client.actor(), name, delete.if_unused) {
        Ok(confirm) => Ok(confirm),
        Err(BrokerError::Route(RouteError::NoExchange(_))) => Ok(Confirm::NOW),
        Err(BrokerError::InUse(name)) => {
            let text = format_args!("exchange '{name}' in vhost '{}' in use", client.vhost_name);
            Err(ProtocolError::new(Code::PreconditionFailed, text))
        }
        Err(error) => Err(client.error(&error)),
    }
}

/// Binds an exchange to another.
pub(crate) fn bind<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    bind: &exchange::Bind<'_>,
) -> Result<(), ProtocolError> {
    let confirm = set_binding(client, world, bind, true)?;
    if !bind.no_wait {
        client.answer(world, channel, confirm, &exchange::BindOk);
    }
    Ok(())
}

/// Takes a binding between two exchanges out.
pub(crate) fn unbind<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    unbind: &exchange::Unbind<'_>,
) -> Result<(), ProtocolError> {
    let exchange::Unbind { destination, source, routing_key, no_wait, arguments } = *unbind;
    let binding = exchange::Bind { destination, source, routing_key, no_wait, arguments };
    let confirm = set_binding(client, world, &binding, false)?;
    if !no_wait {
        client.answer(world, channel, confirm, &exchange::UnbindOk);
    }
    Ok(())
}

/// Makes a binding between two exchanges, or takes it out.
pub(crate) fn set_binding<W: World>(
    client: &Client,
    world: &W,
    binding: &exchange::Bind<'_>,
    is_bound: bool,
) -> Result<Confirm, ProtocolError> {
    let key = BindingKey::new(Syntax::Amqp, binding.routing_key.as_bytes());
    let (from, to) = (binding.source.as_bytes(), binding.destination.as_bytes());
    let (actor, arguments) = (client.actor(), binding_arguments(binding.arguments));
    let set = match is_bound {
        true => broker::bind_exchange(world, &actor, from, &key, &arguments, to),
        false => broker::unbind_exchange(world, &actor, from, &key, &arguments, to),
    };
    set.map_err(|error| client.error(&error))
}

fn refuse_default(name: &str) -> Result<(), ProtocolError> {
    if name.is_empty() {
        let text = "operation not permitted on the default exchange";
        return Err(ProtocolError::new(Code::AccessRefused, text));
    }
    Ok(())
}
