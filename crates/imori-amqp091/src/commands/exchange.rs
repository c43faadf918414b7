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
use crate::commands::arguments::{binding_arguments, inequivalent, type_name};
use crate::protocol_error::{Code, ProtocolError};

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];

/// Declares an exchange, or looks whether it is there.
pub(crate) fn declare<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    declare: &exchange::Declare<'_>,
) -> Result<(), ProtocolError> {
    refuse_default(declare.exchange)?;
    let confirm = if declare.passive {
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

fn make<W: World>(
    client: &Client,
    world: &W,
    declare: &exchange::Declare<'_>,
) -> Result<Confirm, ProtocolError> {
    let kind = KINDS.into_iter().find(|kind| kind.name() == declare.kind).ok_or_else(|| {
        let text = format_args!("unknown exchange type '{}'", declare.kind.escape_default());
        ProtocolError::new(Code::PreconditionFailed, text)
    })?;
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
    };
    let name = declare.exchange.as_bytes();
    broker::declare_exchange(world, &client.actor(), name, kind, settings.clone()).map_err(
        |error| match error {
            BrokerError::Route(RouteError::Differs { exchange, kind: known, settings: current }) => {
                let new = facts(kind, &settings);
                let (received, current) = (new, facts(known, &current));
                let differs = |(new, current): &(_, _)| new != current;
                let pair = received.into_iter().zip(current).find(differs).unwrap_or_default();
                let ((property, received), (_, current)) = pair;
                inequivalent(property, "exchange", &exchange, &client.vhost_name, &received, &current)
            }
            BrokerError::Refused(_) if declare.exchange.starts_with("amq.") => {
                client.error(&RouteError::Reserved(Name::new(name)).into())
            }
            error => client.error(&error),
        },
    )
}

/// The properties of an exchange in the order in which RabbitMQ compares them, as its texts show them.
fn facts(kind: ExchangeKind, settings: &Settings) -> [(&'static str, String); 5] {
    let alternate = match &settings.alternate {
        Some(name) => format!("the value '{name}' of type 'longstr'"),
        None => "none".to_string(),
    };
    [
        ("type", format!("'{}'", kind.name())),
        ("durable", format!("'{}'", settings.is_durable)),
        ("auto_delete", format!("'{}'", settings.is_auto_delete)),
        ("internal", format!("'{}'", settings.is_internal)),
        ("alternate-exchange", alternate),
    ]
}

/// Deletes an exchange; one that is not there is no error.
pub(crate) fn delete<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    delete: &exchange::Delete<'_>,
) -> Result<(), ProtocolError> {
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
    let confirm = match broker::delete_exchange(world, &client.actor(), name, delete.if_unused) {
        Ok(confirm) => confirm,
        Err(BrokerError::Route(RouteError::NoExchange(_))) => Confirm::NOW,
        Err(BrokerError::InUse(name)) => {
            let text = format_args!("exchange '{name}' in vhost '{}' in use", client.vhost_name);
            return Err(ProtocolError::new(Code::PreconditionFailed, text));
        }
        Err(error) => return Err(client.error(&error)),
    };
    if !delete.no_wait {
        client.answer(world, channel, confirm, &exchange::DeleteOk);
    }
    Ok(())
}

/// Binds an exchange to another.
pub(crate) fn bind<W: World>(
    client: &Client,
    world: &W,
    channel: u16,
    bind: &exchange::Bind<'_>,
) -> Result<(), ProtocolError> {
    let key = BindingKey::new(Syntax::Amqp, bind.routing_key.as_bytes());
    let (from, to) = (bind.source.as_bytes(), bind.destination.as_bytes());
    let arguments = binding_arguments(bind.arguments);
    let bound = broker::bind_exchange(world, &client.actor(), from, &key, &arguments, to);
    let confirm = bound.map_err(|error| client.error(&error))?;
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
    let key = BindingKey::new(Syntax::Amqp, unbind.routing_key.as_bytes());
    let (from, to) = (unbind.source.as_bytes(), unbind.destination.as_bytes());
    let arguments = binding_arguments(unbind.arguments);
    let unbound = broker::unbind_exchange(world, &client.actor(), from, &key, &arguments, to);
    let confirm = unbound.map_err(|error| client.error(&error))?;
    if !unbind.no_wait {
        client.answer(world, channel, confirm, &exchange::UnbindOk);
    }
    Ok(())
}

fn refuse_default(name: &str) -> Result<(), ProtocolError> {
    if name.is_empty() {
        let text = "operation not permitted on the default exchange";
        return Err(ProtocolError::new(Code::AccessRefused, text));
    }
    Ok(())
}
