//! `/exchanges`: declared and deleted.

use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::route::{ExchangeKind, RouteError, Settings};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::value::Map;
use crate::management::arguments::{check_name, flag, map, text};
use crate::management::response::Response;

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];

/// Declares an exchange, or finds it as it was declared before.
pub(super) fn declare<W: World>(
    client: &Client,
    world: &W,
    name: &str,
    body: Map<'_>,
) -> Result<Response, Response> {
    let kind = text(body, "type")?.unwrap_or("direct");
    let Some(kind) = KINDS.into_iter().find(|known| known.name() == kind) else {
        let text = format_args!(
            "invalid exchange type '{}'; use direct, fanout, topic or headers",
            kind.escape_debug()
        );
        return Err(Response::refused(400, text));
    };
    let settings = Settings {
        is_durable: flag(body, "durable", true)?,
        is_auto_delete: flag(body, "auto_delete", false)?,
        is_internal: flag(body, "internal", false)?,
        alternate: text(map(body, "arguments")?, "alternate-exchange")?.map(Name::from),
        is_delayed: false,
    };
    let known = broker::look_up_exchange(world, &client.actor(), name.as_bytes());
    if known.is_err() || name.is_empty() {
        check_name(name)?;
    }
    broker::declare_exchange(world, &client.actor(), name.as_bytes(), kind, settings)?;
    Ok(Response::done())
}

/// Deletes an exchange; one that is not there is no error.
pub(super) fn delete<W: World>(client: &Client, world: &W, name: &str) -> Result<Response, Response> {
    check_name(name)?;
    match broker::delete_exchange(world, &client.actor(), name.as_bytes(), false) {
        Ok(_) | Err(BrokerError::Route(RouteError::NoExchange(_))) => Ok(Response::done()),
        Err(error) => Err(error.into()),
    }
}
