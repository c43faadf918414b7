//! Gets single messages of a queue on request, or looks at them.

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::Confirm;
use crate::definitions::{find_plain_queue, find_queue};
use crate::delivery::{Outcome, QueuePosition, Taken};
use crate::entries::Entry;
use crate::error::BrokerError;
use crate::id::{QueueId, SessionId};
use crate::name::Name;
use crate::outbound::Outbound;
use crate::queue::{Got, Peek};
use crate::world::World;

/// How a client takes a single message from a queue.
pub struct GetOptions<'a> {
    /// The session that numbers the delivery.
    pub session: SessionId,
    /// Makes the label that the protocol writes at the start of the delivery, from the number of
    /// messages left.
    pub label: &'a dyn Fn(usize) -> Box<[u8]>,
    /// Whether the client settles the message; otherwise it is accepted at once.
    pub settles: bool,
}

/// Delivers the first message of a queue at once, or reports an empty queue. After [`Got::Pending`]
/// the connection is [unthrottled](World::unthrottle) when the answer is known, and the command
/// must be repeated.
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
    let id = find_plain_queue(world, actor, name)?;
    let now = world.now();
    let got = change_and_deliver(world, id, |queue, effects| {
        queue.touch(now);
        let mut give = |delivery: &crate::delivery::Delivery<'_>, left: usize| {
            let addressed = (options.session, (options.label)(left));
            let given = world.with_outbound(actor.connection, |outbound| {
                outbound.give(id, addressed, options.settles, delivery)
            });
            let given = given.unwrap_or(Taken::Gone);
            if let Some(observer) = world.observer()
                && matches!(given, Taken::Settled | Taken::Unsettled)
            {
                let from = QueuePosition { queue: id, sequence: delivery.sequence };
                observer.delivered(Some(from), actor.connection);
            }
            given
        };
        queue.get(now, actor.connection, &mut give, effects)
    });
    if got == Some(Got::Empty) {
        world.with_outbound(actor.connection, Outbound::got_nothing);
    }
    got.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}

/// The result of [`take`].
#[derive(Debug)]
pub struct TakeReport {
    /// Each message, with the number of ready messages behind it.
    pub messages: Vec<(Entry, usize)>,
    /// Whether more messages are on disk, to be read into memory soon.
    pub is_on_disk: bool,
    /// The confirm after which the change survives a crash.
    pub confirm: Confirm,
}

/// Takes up to `count` messages of a queue for an operator, and settles them with `outcome`. Stops
/// before exceeding `bytes_max` bytes, except for the first message.
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
    let id = find_plain_queue(world, actor, name)?;
    let now = world.now();
    let taken = change_and_deliver(world, id, |queue, effects| {
        queue.touch(now);
        let messages = queue.take(now, (count, bytes_max), outcome, effects);
        let level = queue.level();
        (messages, queue.ready_len() > 0 && !queue.has_front(), level)
    });
    let (messages, is_on_disk, level) = taken.ok_or_else(|| BrokerError::NoQueue(Name::new(name)))?;
    Ok(TakeReport { messages, is_on_disk, confirm: world.confirm_own(level) })
}

/// Returns up to `count` ready messages of a queue, after the first `skip`, in delivery order. Also
/// returns the queue's id, for messages that must still be read from disk.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`].
pub fn peek<W: World>(
    world: &W,
    actor: &Actor<'_>,
    name: &[u8],
    skip: usize,
    count: usize,
) -> Result<(QueueId, Peek), BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(name))?;
    let id = find_queue(world, actor, name)?;
    let peek = world.with_queue(id, |queue| queue.peek(skip, count));
    peek.map(|peek| (id, peek)).ok_or_else(|| BrokerError::NoQueue(Name::new(name)))
}
