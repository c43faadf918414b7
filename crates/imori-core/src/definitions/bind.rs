//! Binds queues and exchanges to exchanges, and removes their bindings.

use super::declare::define;
use super::delete_exchange::record_auto_deleted;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::TOPIC_EXCHANGE;
use crate::name::Name;
use crate::pipeline::{admit, is_topic};
use crate::queue::Queue;
use crate::record::{BindingDefinition, BindingTarget, Definition};
use crate::room::Purpose;
use crate::route::pattern::is_private;
use crate::route::{Arguments, BindingKey, Target};
use crate::topology::Topology;
use crate::world::{Change, World};

/// Binds a queue to an exchange. On return, the next publish of every cell sees the binding. Once
/// the confirm is reached, the binding of a durable queue to a durable exchange survives a crash.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Unavailable`] or [`BrokerError::Route`].
pub fn bind_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    queue: QueueId,
) -> Result<Confirm, BrokerError> {
    bind(world, actor, exchange, key, arguments, &Target::Queue(queue))
}

/// Binds the exchange `to` to `exchange`, so that it receives messages from there. On return, the
/// next publish of every cell sees the binding. Once the confirm is reached, a binding between
/// durable exchanges survives a crash.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Unavailable`] or [`BrokerError::Route`].
pub fn bind_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    to: &[u8],
) -> Result<Confirm, BrokerError> {
    bind(world, actor, exchange, key, arguments, &Target::Exchange(Name::new(to)))
}

/// Removes a binding of a queue; a missing one is no error. On return, no message published later
/// reaches the queue through it. An auto-delete exchange is deleted with its last binding.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub fn unbind_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    queue: QueueId,
) -> Result<Confirm, BrokerError> {
    unbind(world, actor, exchange, key, arguments, &Target::Queue(queue))
}

/// Removes a binding between two exchanges; a missing one is no error. On return, no message
/// published later takes it. An auto-delete exchange is deleted with its last binding.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub fn unbind_exchange<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    to: &[u8],
) -> Result<Confirm, BrokerError> {
    unbind(world, actor, exchange, key, arguments, &Target::Exchange(Name::new(to)))
}

fn bind<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    target: &Target,
) -> Result<Confirm, BrokerError> {
    authorize_bind(world, actor, exchange, key, target)?;
    world.with_topology(|topology| {
        check_private(world, topology, actor, exchange, key)?;
        let definition = definition(world, topology, actor, exchange, key, arguments, target);
        if definition.is_some()
            && let Err(full) = admit(world, Purpose::Declare, exchange)
            && !topology.table().has_binding(actor.vhost, exchange, key, arguments, target)
        {
            return Err(full);
        }
        let is_new = topology.bind(actor.vhost, exchange, key, arguments, target)?;
        if is_new {
            world.changed(actor, Change::Bind, &shown(world, exchange, key, target));
        }
        Ok(match definition {
            Some(binding) if is_new => Confirm::of(Level::Disk, define(world, &Definition::Binding(binding))),
            // Another client's binding may not be durable yet.
            Some(_) => world.confirm_all(Level::Disk),
            None => Confirm::NOW,
        })
    })
}

fn unbind<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    target: &Target,
) -> Result<Confirm, BrokerError> {
    authorize_bind(world, actor, exchange, key, target)?;
    world.with_topology(|topology| {
        let definition = definition(world, topology, actor, exchange, key, arguments, target);
        let removal = topology.unbind(actor.vhost, exchange, key, arguments, target)?;
        let is_kept = definition.is_some();
        if removal.was_there {
            world.changed(actor, Change::Unbind, &shown(world, exchange, key, target));
        }
        if let Some(binding) = definition.filter(|_| removal.was_there) {
            define(world, &Definition::BindingGone(binding));
        }
        record_auto_deleted(world, actor.vhost, removal.auto_deleted);
        Ok(match is_kept {
            false => Confirm::NOW,
            true if removal.was_there => world.confirm_own(Level::Disk),
            // Another client may have removed it, and not durably yet.
            true => world.confirm_all(Level::Disk),
        })
    })
}

/// Checks the rights to both ends of a binding; messages flow from `exchange` to the target.
fn authorize_bind<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    target: &Target,
) -> Result<(), BrokerError> {
    let bind = |object: Object<'_>| world.authorize(actor, Action::Bind, object);
    match target {
        Target::Queue(id) => {
            let name = world.with_queue(*id, |queue| queue.name().clone());
            name.map_or(Ok(()), |name| bind(Object::Queue(name.as_bytes())))?;
        }
        Target::Exchange(name) => bind(Object::Exchange(name.as_bytes()))?,
        // The other end is the subscriber itself.
        Target::Subscription(_) | Target::Member { .. } => {}
    }
    let is_topic = is_topic(world, actor, exchange);
    let from = Object::Pattern { exchange, key, group: None, is_topic };
    Ok(world.authorize(actor, Action::BindTo, from)?)
}

/// Refuses to bind a subject that is the temporary topic of another connection.
///
/// # Errors
/// [`BrokerError::Locked`].
pub(crate) fn check_private<W: World>(
    world: &W,
    topology: &Topology,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
) -> Result<(), BrokerError> {
    if exchange != TOPIC_EXCHANGE || !is_private(key.text.as_bytes()) {
        return Ok(());
    }
    let owned = topology.table().queue(actor.vhost, key.text.as_bytes());
    let is_open = |queue: &mut Queue| queue.is_open_to(actor.connection);
    match owned.and_then(|id| world.with_queue(id, is_open)) {
        Some(false) => Err(BrokerError::Locked(key.text.clone())),
        Some(true) | None => Ok(()),
    }
}

/// Describes a binding for the audit log.
fn shown<W: World>(world: &W, exchange: &[u8], key: &BindingKey, target: &Target) -> String {
    let to = match target {
        Target::Queue(id) => {
            let name = world.with_queue(*id, |queue| queue.name().to_string());
            format!("queue `{}`", name.unwrap_or_default())
        }
        Target::Exchange(name) => format!("exchange `{name}`"),
        Target::Subscription(_) | Target::Member { .. } => String::from("a subscription"),
    };
    format!("{} to {to}", Object::Pattern { exchange, key, group: None, is_topic: false })
}

/// The definition to record for a binding, if both of its ends outlive the broker.
fn definition<W: World>(
    world: &W,
    topology: &Topology,
    actor: &Actor<'_>,
    exchange: &[u8],
    key: &BindingKey,
    arguments: &Arguments,
    target: &Target,
) -> Option<BindingDefinition> {
    let is_durable = |name: &[u8]| {
        let found = topology.table().exchange(actor.vhost, name);
        found.is_some_and(|exchange| exchange.settings().is_durable)
    };
    if !is_durable(exchange) {
        return None;
    }
    let target = match target {
        Target::Queue(id) => {
            let durability = world.with_queue(*id, |queue| queue.durability()).flatten()?;
            BindingTarget::Queue(durability.id)
        }
        Target::Exchange(name) if is_durable(name.as_bytes()) => BindingTarget::Exchange(name.clone()),
        Target::Exchange(_) | Target::Subscription(_) | Target::Member { .. } => return None,
    };
    let (vhost, exchange) = (actor.vhost, Name::new(exchange));
    Some(BindingDefinition { vhost, exchange, key: key.clone(), arguments: arguments.clone(), target })
}
