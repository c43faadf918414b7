//! Declares queues and exchanges.

use super::republish;
use crate::arguments::difference;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level, Lsn};
use crate::error::BrokerError;
use crate::id::{DurableQueueId, QueueId, VhostId};
use crate::name::Name;
use crate::pipeline::{admit, record_one};
use crate::queue::{Durability, Queue, QueueSettings};
use crate::quota::QuotaReached;
use crate::record::{Definition, NewRecord, RecordKind};
use crate::room::Purpose;
use crate::route::{ExchangeKind, Settings};
use crate::topology::Topology;
use crate::world::{Change, Counter, Quotas as _, World};

/// The result of declaring a queue.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// The queue.
    pub id: QueueId,
    /// The confirm after which the declaration survives a crash.
    pub confirm: Confirm,
}

/// Declares a queue: creates it, or finds the existing one.
///
/// With `must_match` an existing queue must have the same settings; otherwise it is accepted as it
/// is.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`], [`BrokerError::Inequivalent`],
/// [`BrokerError::TooManyQueues`], [`BrokerError::Unavailable`] or [`BrokerError::Route`].
pub fn declare_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
    must_match: bool,
) -> Result<Declared, BrokerError> {
    declare_by(world, actor, (name, Action::Declare), settings, must_match)
}

/// Declares a queue under a name that the protocol generated because the client left it to the
/// broker. The name begins with `amq.`, which clients cannot use themselves, and cannot be guessed.
///
/// # Errors
/// As [`declare_queue`].
pub fn declare_unnamed_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    made_name: &[u8],
    settings: &QueueSettings,
) -> Result<Declared, BrokerError> {
    declare_by(world, actor, (made_name, Action::DeclareUnnamed), settings, true)
}

fn declare_by<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (name, action): (&[u8], Action),
    settings: &QueueSettings,
    must_match: bool,
) -> Result<Declared, BrokerError> {
    world.authorize(actor, action, Object::Queue(name))?;
    let now = world.now();
    let declared = world.with_topology(|topology| {
        if let Some(id) = topology.table().queue(actor.vhost, name) {
            let checked = world.with_queue(id, |queue| {
                if !queue.is_open_to(actor.connection) {
                    return Err(BrokerError::Locked(queue.name().clone()));
                }
                if must_match && let Some(difference) = difference(settings, queue.declared()) {
                    let (name, difference) = (queue.name().clone(), Box::new(difference));
                    return Err(BrokerError::Inequivalent { name, difference });
                }
                queue.touch(now);
                Ok(queue.durability())
            });
            // The table and the queues change together under the topology lock, so the queue
            // exists.
            return checked.unwrap_or(Ok(None)).map(|durability| (id, durability, None));
        }
        authorize_new_queue(world, actor, (name, action), settings)?;
        let settings = &republish::of_new(world, actor, name, settings)?;
        let (name, shown) = (Name::new(name), name);
        check_quota(world, topology, actor.vhost, &name)?;
        if settings.survives() {
            admit(world, Purpose::Declare, name.as_bytes())?;
        }
        let gauge = world.gauge().clone();
        let mut queue = Queue::new(actor.vhost, name.clone(), settings.clone(), gauge, now);
        queue.govern(topology.table().policies(actor.vhost).of_queue(shown, settings.kind), now);
        let wake_up = queue.new_wake_up();
        if settings.survives() {
            let (vhost, settings) = (actor.vhost, settings.clone());
            let definition = Definition::Queue { vhost, name, settings };
            queue.make_durable(DurableQueueId(define(world, &definition).0));
            queue.record_stream(|record| record_one(world, record));
        }
        let durability = queue.durability();
        let added = add_queue(world, topology, queue);
        if let (Err(_), Some(Durability { id, .. })) = (&added, durability) {
            define(world, &Definition::QueueGone { queue: id });
        }
        if added.is_ok() {
            world.count(Counter::QueueCreated);
            world.changed(actor, Change::Declare, &Object::Queue(shown));
        }
        added.map(|id| (id, durability, wake_up))
    });
    let (id, durability, wake_up) = declared?;
    world.count(Counter::QueueDeclared);
    if let Some(at) = wake_up {
        world.wake_queue_at(id, at);
    }
    // A client that finds the queue must wait for its record too, which may not be durable yet.
    let confirm =
        durability.map_or(Confirm::NOW, |Durability { id, .. }| Confirm::of(Level::Disk, Lsn(id.0)));
    Ok(Declared { id, confirm })
}

/// Checks the additional rights needed to create a queue.
fn authorize_new_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    (name, action): (&[u8], Action),
    settings: &QueueSettings,
) -> Result<(), BrokerError> {
    let queue = Object::Queue(name);
    if action != Action::DeclareUnnamed {
        world.authorize(actor, Action::Create, queue)?;
    }
    if let Some(target) = &settings.dead_letter {
        world.authorize(actor, Action::ForwardFrom, queue)?;
        let exchange = target.exchange.as_bytes();
        match &target.routing_key {
            // The exchange may be of any kind when dead letters arrive.
            Some(key) => {
                let to = Object::Subject { exchange, subject: key.as_bytes(), is_topic: true };
                world.authorize(actor, Action::Publish, to)?;
            }
            None => world.authorize(actor, Action::Forward, Object::Exchange(exchange))?,
        }
    }
    Ok(())
}

/// Checks the vhost's limit on the number of queues, if an operator set one.
fn check_quota<W: World>(
    world: &W,
    topology: &Topology,
    vhost: VhostId,
    queue: &Name,
) -> Result<(), QuotaReached> {
    let table = topology.table();
    match world.quotas().queues_max(vhost) {
        Some(max) if table.queue_count(vhost) >= max => {
            let vhost = table.vhost_name(vhost).cloned().unwrap_or_else(|| Name::new(b""));
            Err(QuotaReached::Queues { queue: queue.clone(), vhost, max })
        }
        _ => Ok(()),
    }
}

fn add_queue<W: World>(world: &W, topology: &mut Topology, queue: Queue) -> Result<QueueId, BrokerError> {
    let (vhost, name, owner) = (queue.vhost(), queue.name().clone(), queue.settings().exclusive_to);
    let id = world.add_queue(queue).ok_or(BrokerError::TooManyQueues)?;
    if let Err(error) = topology.add_queue(vhost, &name, id, owner) {
        world.remove_queue(id);
        return Err(error.into());
    }
    Ok(id)
}

/// Declares an exchange: creates it, or finds an equal one. Returns the confirm after which the
/// declaration survives a crash.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Unavailable`] or [`BrokerError::Route`].
pub fn declare_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    kind: ExchangeKind,
    settings: Settings,
) -> Result<Confirm, BrokerError> {
    let object = Object::Exchange(name);
    world.authorize(actor, Action::Declare, object)?;
    let definition = settings.is_durable.then(|| {
        let (vhost, name, settings) = (actor.vhost, Name::new(name), settings.clone());
        Definition::Exchange { vhost, name, kind, settings }
    });
    world.with_topology(|topology| {
        if topology.table().exchange(actor.vhost, name).is_none() {
            world.authorize(actor, Action::Create, object)?;
            if let Some(alternate) = &settings.alternate {
                world.authorize(actor, Action::ForwardFrom, object)?;
                let to = Object::Exchange(alternate.as_bytes());
                world.authorize(actor, Action::Forward, to)?;
            }
            if definition.is_some() {
                admit(world, Purpose::Declare, name)?;
            }
        }
        let is_new = topology.declare_exchange(actor.vhost, name, kind, settings)?;
        if is_new {
            world.changed(actor, Change::Declare, &object);
        }
        Ok(match definition.filter(|_| is_new) {
            Some(definition) => Confirm::of(Level::Disk, define(world, &definition)),
            // Another client's declaration may not be durable yet.
            None => world.confirm_all(Level::Disk),
        })
    })
}

/// Appends a definition to the journal; returns its log sequence number.
pub(super) fn define<W: World>(world: &W, definition: &Definition) -> Lsn {
    record_one(world, NewRecord::new(RecordKind::Definition, definition.encode()))
}
