//! `/exchanges`: declares and deletes exchanges.

use imori_core::arguments::read_exchange;
use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::route::{RouteError, Settings};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::value::Map;
use crate::management::arguments::{check_name, entries, flag, map, text};
use crate::management::response::Response;

/// Declares an exchange, or finds it as it was declared before.
pub(super) fn declare<W: World>(
    client: &Client,
    world: &W,
    name: &str,
    body: Map<'_>,
) -> Result<Response, Response> {
    let declared = Settings {
        is_durable: flag(body, "durable", true)?,
        is_auto_delete: flag(body, "auto_delete", false)?,
        is_internal: flag(body, "internal", false)?,
        ..Settings::default()
    };
    let kind = text(body, "type")?.unwrap_or("direct");
    let read = read_exchange(kind.as_bytes(), &declared, entries(map(body, "arguments")?));
    let (kind, settings) = read.map_err(|error| Response::refused(400, error))?;
    let known = broker::look_up_exchange(world, &client.actor(), name.as_bytes());
    if known.is_err() || name.is_empty() {
        check_name(name)?;
    }
    broker::declare_exchange(world, &client.actor(), name.as_bytes(), kind, settings)?;
    Ok(Response::done())
}

/// Deletes an exchange; a missing one is no error.
pub(super) fn delete<W: World>(client: &Client, world: &W, name: &str) -> Result<Response, Response> {
    check_name(name)?;
    match broker::delete_exchange(world, &client.actor(), name.as_bytes(), false) {
        Ok(_) | Err(BrokerError::Route(RouteError::NoExchange(_))) => Ok(Response::done()),
        Err(error) => Err(error.into()),
    }
}
