//! Finds queues and exchanges and changes nothing.

use crate::authorize::{Action, Actor, Object, authorize};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::name::Name;
use crate::route::{ExchangeKind, RouteError, Settings};
use crate::world::World;

/// A queue as somebody finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueInspection {
    /// The queue.
    pub id: QueueId,
    /// Messages that wait to be given out. The counts are 0 for an actor who may not read the queue.
    pub ready: usize,
    /// Messages that wait for their time.
    pub delayed: usize,
    /// The number of its consumers.
    pub consumers: usize,
}

/// Finds a queue, for an actor who may use it.
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

/// Finds a queue and counts what it has: a passive declaration. The queue does not count as used by it.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::NoQueue`] or [`BrokerError::Locked`].
pub fn look_up_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
) -> Result<QueueInspection, BrokerError> {
    world.authorize(actor, Action::Inspect, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    // No refusal: declarations are answered with counts, also to a client that only declares or publishes.
    let is_reader = authorize(actor.identity, Action::Consume, actor.vhost, Object::Queue(name)).is_ok();
    let look = |queue: &mut crate::queue::Queue| match is_reader {
        true => QueueInspection {
            id,
            ready: queue.ready_len(),
            delayed: queue.delayed_len(),
            consumers: queue.consumers_len(),
        },
        false => QueueInspection { id, ready: 0, delayed: 0, consumers: 0 },
    };
    world.with_queue(id, look).ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// Finds an exchange; gives its kind and its settings.
///
/// # Errors
/// [`BrokerError::Refused`], or [`BrokerError::Route`] where there is none of this name.
pub fn look_up_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
) -> Result<(ExchangeKind, Settings), BrokerError> {
    let object = Object::Exchange(name);
    world.authorize(actor, Action::Inspect, object)?;
    let found = world.with_router(|_, table| {
        let exchange = table.exchange(actor.vhost, name)?;
        Some((exchange.kind(), exchange.settings().clone()))
    });
    found.ok_or_else(|| RouteError::NoExchange(Name::new(name)).into())
}
