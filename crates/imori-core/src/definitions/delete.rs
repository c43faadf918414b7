//! Deletes queues.

use super::declare::define;
use super::delete_exchange::record_auto_deleted;
use super::look_up::find_queue;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::error::BrokerError;
use crate::id::{QueueId, VhostId};
use crate::name::Name;
use crate::outbound::InboxAddress;
use crate::pipeline::{give_up, publish_dead_letters, record_effects, unthrottle};
use crate::queue::{DeadLetter, Durability, Effects, Queue};
use crate::record::Definition;
use crate::topology::Topology;
use crate::world::{Change, Counter, World};

/// Conditions for deleting a queue.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Delete it only if it has no consumers.
    pub if_unused: bool,
    /// Delete it only if it has no ready messages.
    pub if_empty: bool,
}

/// The result of deleting a queue.
#[derive(Debug, Clone, Copy)]
pub struct Deleted {
    /// The id of the queue, by which its readers know it.
    pub queue: QueueId,
    /// The number of its ready messages.
    pub ready: usize,
    /// The confirm after which the deletion survives a crash.
    pub confirm: Confirm,
}

/// Deletes a queue with its messages and tells its consumers; returns the number of ready messages.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn delete_queue<W: World>(world: &W, actor: &Actor<'_>, name: &[u8]) -> Result<usize, BrokerError> {
    delete_queue_if(world, actor, name, DeleteOptions::default(), |_| ()).map(|deleted| deleted.ready)
}

/// Deletes a queue with its messages, if the conditions hold, and tells its consumers. Calls
/// `answer` before telling them.
///
/// # Errors
/// As [`delete_queue`], and [`BrokerError::InUse`] or [`BrokerError::NotEmpty`].
pub fn delete_queue_if<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    options: DeleteOptions,
    answer: impl FnOnce(&Deleted),
) -> Result<Deleted, BrokerError> {
    world.authorize(actor, Action::Delete, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let may_go = |queue: &Queue| {
        if options.if_unused && queue.consumers_len() > 0 {
            return Err(BrokerError::InUse(queue.name().clone()));
        }
        if options.if_empty && queue.ready_len() > 0 {
            return Err(BrokerError::NotEmpty(queue.name().clone()));
        }
        Ok(())
    };
    let deleted =
        remove_queue(world, id, may_go, answer)?.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
    world.changed(actor, Change::Delete, &Object::Queue(name));
    Ok(deleted)
}

/// Removes a queue if `may_go` allows it, calls `answer`, and then tells its consumers; `None` if
/// the queue is already gone.
///
/// # Errors
/// The error of `may_go`.
pub(crate) fn remove_queue<W: World>(
    world: &W,
    id: QueueId,
    may_go: impl Fn(&Queue) -> Result<(), BrokerError>,
    answer: impl FnOnce(&Deleted),
) -> Result<Option<Deleted>, BrokerError> {
    // Must precede the record of the deletion, which covers everything the queue holds.
    let Some(unsent) = world.with_queue(id, |queue| {
        may_go(queue)?;
        Ok::<_, BrokerError>(UnsentDeadLetters::of(world, queue))
    }) else {
        return Ok(None);
    };
    unsent?.dead_letter(world);
    let removed = world.with_topology(|topology| {
        let checked = world.with_queue(id, |queue| {
            may_go(queue)?;
            // Other threads may still use the id until the queue is removed.
            queue.retire();
            Ok::<_, BrokerError>(())
        });
        checked.transpose()?;
        Ok::<_, BrokerError>(forget(world, topology, id))
    });
    let Some((mut queue, confirm)) = removed? else { return Ok(None) };
    UnsentDeadLetters::of(world, &mut queue).dead_letter(world);
    give_up(world, id, queue.take_pages());
    unthrottle(world, queue.unthrottle());
    unthrottle(world, queue.take_askers());
    let deleted = Deleted { queue: id, ready: queue.ready_len(), confirm };
    answer(&deleted);
    for reader in queue.consumers() {
        world.with_outbound(reader.connection, |outbound| outbound.cancel_reader(reader.id, queue.name()));
    }
    Ok(Some(deleted))
}

/// Removes a queue from topology and world, and records its deletion, which covers its messages.
fn forget<W: World>(world: &W, topology: &mut Topology, id: QueueId) -> Option<(Queue, Confirm)> {
    let auto_deleted = topology.forget_queue(id);
    let queue = world.remove_queue(id)?;
    if let Some(address) = InboxAddress::from_queue_name(queue.name().as_bytes()) {
        world.with_outbound(address.owner, |outbound| outbound.remove_reply_queue(&address));
    }
    world.count(Counter::QueueDeleted);
    let durability = queue.durability();
    if let Some(Durability { id, .. }) = durability {
        define(world, &Definition::QueueGone { queue: id });
    }
    record_auto_deleted(world, queue.vhost(), auto_deleted);
    let confirm = if durability.is_some() { world.confirm_own(Level::Disk) } else { Confirm::NOW };
    Some((queue, confirm))
}

/// Deletes an auto-delete queue if it still has no consumers.
pub(crate) fn delete_unused<W: World>(world: &W, id: QueueId) {
    delete_if(world, id, |queue| queue.consumers_len() == 0);
}

/// Deletes a queue that has been idle for longer than allowed.
pub(crate) fn delete_idle<W: World>(world: &W, id: QueueId) {
    let now = world.now();
    delete_if(world, id, |queue| queue.is_idle_too_long(now));
}

fn delete_if<W: World>(world: &W, id: QueueId, is_due: impl FnOnce(&Queue) -> bool) {
    let queue = world.with_topology(|topology| {
        let is_due = world.with_queue(id, |queue| {
            let is_due = is_due(queue);
            if is_due {
                // A thread that has already looked the queue up may try to read it until it is
                // removed.
                queue.retire();
            }
            is_due
        })?;
        if !is_due {
            return None;
        }
        forget(world, topology, id)
    });
    // Disposes of the messages after releasing the topology lock.
    if let Some((mut queue, _)) = queue {
        UnsentDeadLetters::of(world, &mut queue).dead_letter(world);
        give_up(world, id, queue.take_pages());
        unthrottle(world, queue.unthrottle());
        unthrottle(world, queue.take_askers());
    }
}

/// Pending dead letters of a queue that is being deleted. They are published even without room on
/// the disk, because deleting the rest of the queue frees more.
struct UnsentDeadLetters {
    vhost: VhostId,
    dead: Vec<DeadLetter>,
}

impl UnsentDeadLetters {
    fn of<W: World>(world: &W, queue: &mut Queue) -> UnsentDeadLetters {
        let mut effects = Effects::default();
        queue.send_pending_dead_letters(world.now(), &mut effects);
        let mut dead = Vec::new();
        record_effects(world, &mut effects, &mut dead);
        UnsentDeadLetters { vhost: queue.vhost(), dead }
    }

    fn dead_letter<W: World>(self, world: &W) {
        if !self.dead.is_empty() {
            publish_dead_letters(world, self.vhost, self.dead);
        }
    }
}
