//! Gives out messages of a queue to somebody who asks for them.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::definitions::find_queue;
use crate::delivery::{Outcome, Taken};
use crate::entries::Entry;
use crate::error::BrokerError;
use crate::id::SessionId;
use crate::name::Name;
use crate::outbound::Outbound;
use crate::queue::Got;
use crate::world::World;

/// Options of a command that asks for one message.
pub struct GetOptions<'a> {
    /// The session that numbers the delivery.
    pub session: SessionId,
    /// Makes what the protocol writes at the head of the delivery; it is given how many messages wait behind it.
    pub label: &'a dyn Fn(usize) -> Box<[u8]>,
    /// The asker settles the message; otherwise the queue is done with it at once.
    pub settles: bool,
}

/// Gives out the first message of a queue. The delivery is written at once; an empty queue says so. On
/// [`Got::Pending`] the connection is [unthrottled](World::unthrottle) when the answer is known, and the command is
/// to be repeated then.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn get<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    options: &GetOptions<'_>,
) -> Result<Got, BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let now = world.now();
    let got = change_and_deliver(world, id, |queue, effects| {
        queue.touch(now);
        let mut give = |delivery: &crate::delivery::Delivery<'_>, left: usize| {
            let addressed = (options.session, (options.label)(left));
            let given = world.with_outbound(actor.connection, |outbound| {
                outbound.give(id, addressed, options.settles, delivery)
            });
            given.unwrap_or(Taken::Gone)
        };
        queue.get(now, actor.connection, &mut give, effects)
    });
    if got == Some(Got::Empty) {
        world.with_outbound(actor.connection, Outbound::got_nothing);
    }
    got.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// Messages that an operator took.
#[derive(Debug)]
pub struct TakeReport {
    /// Each, and how many waited behind it.
    pub messages: Vec<(Entry, usize)>,
    /// Messages wait that have to be read from disk first; they come into memory by and by.
    pub is_on_disk: bool,
    /// The confirm after which no crash undoes it.
    pub confirm: Confirm,
}

/// Gives up to `count` messages of a queue, of at most `bytes_max` bytes but for the first, to an operator who settles
/// all of them so at once.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn take<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    (count, bytes_max): (usize, usize),
    outcome: Outcome,
) -> Result<TakeReport, BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let now = world.now();
    let taken = change_and_deliver(world, id, |queue, effects| {
        queue.touch(now);
        let messages = queue.take(now, (count, bytes_max), outcome, effects);
        let level = queue.durability().map_or(Level::Memory, |durability| durability.level);
        (messages, queue.ready_len() > 0 && !queue.has_front(), level)
    });
    let (messages, is_on_disk, level) = taken.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
    Ok(TakeReport { messages, is_on_disk, confirm: Confirm::of(level, world.appended()) })
}
