//! Finds queues and exchanges without changing anything.

use crate::authorize::{Action, Actor, Object, authorize};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::name::Name;
use crate::route::{ExchangeKind, RouteError, Settings};
use crate::world::World;

/// A queue, as a passive declaration reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueInspection {
    /// The queue.
    pub id: QueueId,
    /// The number of ready messages. All counts are 0 for an actor that may not read the queue.
    pub ready: usize,
    /// The number of delayed messages.
    pub delayed: usize,
    /// The number of its consumers, those without credit included.
    pub consumers: usize,
}

/// Finds a queue by name, unless it is exclusive to another connection.
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

/// Finds a queue as [`find_queue`] does, and refuses a stream, whose messages nobody takes out.
///
/// # Errors
/// As [`find_queue`], and [`BrokerError::IsStream`].
pub(crate) fn find_plain_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
) -> Result<QueueId, BrokerError> {
    let id = find_queue(world, actor, name)?;
    match world.with_queue(id, |queue| queue.is_stream()) {
        Some(true) => Err(BrokerError::IsStream(Name::new(name))),
        _ => Ok(id),
    }
}

/// Finds a queue and its counts, as a passive declaration does. This does not count as use of the
/// queue.
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
    // Counts are hidden, not refused: declarations report them to clients that only declare or
    // publish.
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

/// Finds an exchange; returns its kind and settings.
///
/// # Errors
/// [`BrokerError::Refused`], or [`BrokerError::Route`] if it does not exist.
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
