//! Changes the settings of a stream, which keeps its messages.

use super::declare::define;
use super::look_up::find_queue;
use super::republish;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::name::Name;
use crate::pipeline::admit;
use crate::queue::{Durability, QueueSettings};
use crate::record::Definition;
use crate::room::Purpose;
use crate::world::{Change, World};

/// Gives a stream other settings. Messages beyond its new limits go with its next change. Returns the stream, and the
/// confirm after which it has the settings after a crash too.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`], [`BrokerError::Unavailable`], or [`BrokerError::NoQueue`] if there is
/// no such stream.
pub fn change_stream<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    settings: &QueueSettings,
) -> Result<(QueueId, Confirm), BrokerError> {
    let object = Object::Queue(name);
    world.authorize(actor, Action::Declare, object)?;
    world.authorize(actor, Action::Create, object)?;
    let now = world.now();
    world.with_topology(|topology| {
        let id = find_queue(world, actor, name)?;
        admit(world, Purpose::Declare, name)?;
        let before = world.with_queue(id, |queue| queue.declared().clone());
        let before = before.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
        let settings = &republish::of_changed(world, actor, name, (&before, settings))?;
        let matched = topology.table().policies(actor.vhost).of_queue(name, settings.kind);
        let changed = world.with_queue(id, |queue| {
            queue.is_stream().then(|| {
                queue.redeclare(settings.clone(), now);
                queue.govern(matched, now);
                queue.durability()
            })
        });
        let durability = changed.flatten().ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
        if let Some(Durability { id: queue, .. }) = durability {
            let (vhost, name, settings) = (actor.vhost, Name::new(name), settings.clone());
            define(world, &Definition::QueueChanged { queue, vhost, name, settings });
        }
        world.changed(actor, Change::Declare, &object);
        Ok((id, world.confirm_own(Level::Disk)))
    })
}
