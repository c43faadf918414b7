//! `exchange.declare`, `delete`, `bind` and `unbind`.

use std::fmt;

use imori_core::arguments::{
    ALTERNATE_EXCHANGE, DELAYED, DELAYED_TYPE, ExchangeError, declared_kind, read_exchange,
};
use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::route::{BindingKey, ExchangeKind, RouteError, Settings, Syntax};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::methods::exchange;
use crate::commands::arguments::{binding_arguments, inequivalent, shown_arguments, type_name};
use crate::header_block::value;
use crate::protocol_error::{Code, ProtocolError};

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
fn make<W: World>(
    client: &Client,
    world: &W,
    declare: &exchange::Declare<'_>,
) -> Result<Confirm, ProtocolError> {
    refuse_default(declare.exchange)?;
    let declared = Settings {
        is_durable: declare.durable,
        is_auto_delete: declare.auto_delete,
        is_internal: declare.internal,
        ..Settings::default()
    };
    let arguments = declare.arguments.iter().map(|(name, field)| (name, value(field)));
    let read = read_exchange(declare.kind.as_bytes(), &declared, arguments);
    let (kind, settings) = read.map_err(|error| refused(client, declare, &error))?;
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

#[cold]
fn refused(client: &Client, declare: &exchange::Declare<'_>, error: &ExchangeError) -> ProtocolError {
    let new = |text: fmt::Arguments<'_>| ProtocolError::new(Code::PreconditionFailed, text);
    match error {
        ExchangeError::UnknownKind(kind) => new(format_args!("unknown exchange type '{kind}'")),
        ExchangeError::AlternateType(_) => new(format_args!(
            "invalid type '{}' for arg '{ALTERNATE_EXCHANGE}' in exchange '{}' in vhost '{}'",
            declare.arguments.find(ALTERNATE_EXCHANGE).map_or("void", type_name),
            declare.exchange.escape_default(),
            client.vhost_name
        )),
        ExchangeError::NoDelayedType => {
            new(format_args!("Invalid argument, '{DELAYED_TYPE}' must be an existing exchange type"))
        }
        ExchangeError::NestedDelayedType => {
            new(format_args!("Invalid argument, '{DELAYED}' can't be used for '{DELAYED_TYPE}'"))
        }
    }
}

/// Returns the properties and arguments of an exchange in the order in which RabbitMQ compares
/// them.
fn facts(kind: ExchangeKind, settings: &Settings) -> [(&'static str, Option<String>); 6] {
    let flag = |is_set: bool| Some(is_set.to_string());
    let delayed_kind = settings.is_delayed.then(|| kind.name().to_string());
    let kind = declared_kind(kind, settings).to_string();
    [
        ("type", Some(kind)),
        ("durable", flag(settings.is_durable)),
        ("auto_delete", flag(settings.is_auto_delete)),
        ("internal", flag(settings.is_internal)),
        (ALTERNATE_EXCHANGE, settings.alternate.as_ref().map(Name::to_string)),
        (DELAYED_TYPE, delayed_kind),
    ]
}

/// Deletes an exchange; a missing one is no error.
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
fn remove<W: World>(
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

/// Removes a binding between two exchanges.
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
fn set_binding<W: World>(
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
