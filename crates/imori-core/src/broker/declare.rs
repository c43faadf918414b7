//! Queues, exchanges and bindings come to be.

use super::actor::Actor;
use crate::authorize::{Action, Object, authorize};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::name::Name;
use crate::queue::{Queue, QueueSettings};
use crate::route::{BindingKey, ExchangeKind, Settings};
use crate::world::World;

/// Finds a queue, for somebody who may use it.
///
/// # Errors
/// [`BrokerError::NoQueue`] or [`BrokerError::Locked`].
pub fn find_queue<W: World>(world: &W, actor: &Actor<'_>, name: &[u8]) -> Result<QueueId, BrokerError> {
    let id = world.with_router(|_, table| table.queue(actor.vhost, name));
    let is_open = id.and_then(|id| world.with_queue(id, |queue| queue.is_open_to(actor.connection)));
    match (id, is_open) {
        (Some(id), Some(true)) => Ok(id),
        (Some(_), Some(false)) => Err(BrokerError::Locked(Name::new(name))),
        _ => Err(BrokerError::NoQueue(Name::new(name))),
    }
}

/// Declares a queue: makes it, or finds it as it was declared before.
///
/// With `must_match` an existing queue has to have the same settings; without, it is taken as it is.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`], [`BrokerError::Inequivalent`],
/// [`BrokerError::TooManyQueues`] or [`BrokerError::Route`].
pub fn declare_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
    must_match: bool,
) -> Result<QueueId, BrokerError> {
    let now = world.now();
    let declared = world.with_topology(|topology| {
        if let Some(id) = topology.table().queue(actor.vhost, name) {
            let checked = world.with_queue(id, |queue| {
                if !queue.is_open_to(actor.connection) {
                    return Err(BrokerError::Locked(queue.name().clone()));
                }
                if must_match && let Some(property) = queue.settings().difference(settings) {
                    return Err(BrokerError::Inequivalent { name: queue.name().clone(), property });
                }
                queue.touch(now);
                Ok(())
            });
            // Both the table and the queues change under the topology's lock, so it is there.
            return checked.unwrap_or(Ok(())).map(|()| (id, None));
        }
        authorize(actor.identity, Action::Declare, actor.vhost, Object::Queue(name))?;
        let name = Name::new(name);
        let gauge = world.gauge().clone();
        let mut queue = Queue::new(actor.vhost, name.clone(), settings.clone(), gauge, now);
        let wake_up = queue.new_wake_up();
        let id = world.add_queue(queue).ok_or(BrokerError::TooManyQueues)?;
        if let Err(error) = topology.add_queue(actor.vhost, &name, id, settings.exclusive_to) {
            world.remove_queue(id);
            return Err(error.into());
        }
        Ok((id, wake_up))
    });
    let (id, wake_up) = declared?;
    if let Some(at) = wake_up {
        world.wake_queue_at(id, at);
    }
    Ok(id)
}

/// Declares an exchange: makes it, or finds it as it was declared before.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub fn declare_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    kind: ExchangeKind,
    settings: Settings,
) -> Result<(), BrokerError> {
    authorize(
        actor.identity,
        Action::Declare,
        actor.vhost,
        Object::Exchange { exchange: name, subject: b"" },
    )?;
    world.with_topology(|topology| topology.declare_exchange(actor.vhost, name, kind, settings))?;
    Ok(())
}

/// Binds a queue to an exchange. When it returns, the next publish of every cell sees it.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub fn bind_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    queue: QueueId,
) -> Result<(), BrokerError> {
    authorize(
        actor.identity,
        Action::Bind,
        actor.vhost,
        Object::Exchange { exchange, subject: key.text.as_bytes() },
    )?;
    world.with_topology(|topology| topology.bind_queue(actor.vhost, exchange, key, queue))?;
    Ok(())
}
