//! Deletes exchanges, and records the deletion of auto-delete exchanges.

use super::declare::define;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::error::BrokerError;
use crate::id::VhostId;
use crate::name::Name;
use crate::record::Definition;
use crate::route::{AutoDeleted, RouteError};
use crate::world::{Change, World};

/// Deletes an exchange with the bindings from and to it. With `if_unused`, an exchange with
/// bindings of its own is not deleted. On return, no cell routes through it any more.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::InUse`], or [`BrokerError::Route`] if the exchange does
/// not exist or is predeclared.
pub fn delete_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    if_unused: bool,
) -> Result<Confirm, BrokerError> {
    let object = Object::Exchange(name);
    world.authorize(actor, Action::Delete, object)?;
    world.with_topology(|topology| {
        let Some(exchange) = topology.table().exchange(actor.vhost, name) else {
            return Err(RouteError::NoExchange(Name::new(name)).into());
        };
        let (is_durable, is_unused) = (exchange.settings().is_durable, exchange.is_empty());
        if if_unused && !is_unused {
            return Err(BrokerError::InUse(exchange.name().clone()));
        }
        let removal = topology.delete_exchange(actor.vhost, name)?;
        if is_durable {
            define(world, &Definition::ExchangeGone { vhost: actor.vhost, name: Name::new(name) });
        }
        record_auto_deleted(world, actor.vhost, removal.auto_deleted);
        world.changed(actor, Change::Delete, &object);
        Ok(if is_durable { world.confirm_own(Level::Disk) } else { Confirm::NOW })
    })
}

/// Records the deletion of auto-delete exchanges. Called with the topology locked.
pub(crate) fn record_auto_deleted<W: World>(world: &W, vhost: VhostId, gone: Vec<AutoDeleted>) {
    for AutoDeleted { name, .. } in gone.into_iter().filter(|gone| gone.is_durable) {
        define(world, &Definition::ExchangeGone { vhost, name });
    }
}
