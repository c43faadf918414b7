//! A consumer says how much it takes, and what became of its deliveries.

use super::deliver::{change_and_deliver, wake_consumers};
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level};
use crate::delivery::{Outcome, QueuePosition};
use crate::error::BrokerError;
use crate::id::{ConnectionId, Reader, ReaderId};
use crate::limits::SETTLES_AT_ONCE;
use crate::outbound::{Grant, Numbers, SessionId, Settled, SettledOnly, Source, Unsettled, Wake};
use crate::pipeline::record_annotations;
use crate::world::World;

/// Gives a consumer credit. One that drains gets what there is, from disk too, and then gives up the rest of its credit:
/// its encoder says so by [`drained`](crate::outbound::Encoder::drained), which nearly always is written when this
/// returns.
pub fn grant<W: World>(world: &W, actor: &Actor<'_>, id: ReaderId, grant: &Grant) {
    let granted = world.with_outbound(actor.connection, |outbound| {
        let wake = outbound.grant(id, grant);
        let Some(Source::Queue(queue)) = outbound.source(id) else { return None };
        Some((*queue, wake))
    });
    let Some((queue, wake)) = granted.flatten() else { return };
    let reader = Reader { connection: actor.connection, id };
    if grant.drains || wake.is_some() {
        change_and_deliver(world, queue, |queue, _| {
            if wake.is_some() {
                queue.wake(reader);
            }
            if grant.drains {
                queue.drain(reader);
            }
        });
    }
}

/// Lets the peer's window of a session end before the frame of this serial number.
pub fn grant_frames<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, end: u32) {
    let wake = world.with_outbound(actor.connection, |outbound| outbound.grant_frames(session, end));
    wake_consumers(world, actor.connection, wake.flatten().as_slice());
}

/// The result of settling deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleReport {
    /// How many are settled.
    pub settled: usize,
    /// As many were meant as one command does not settle at once: the caller comes back with the rest, after others had
    /// their turns. Where one was named, that is not settled yet.
    pub has_more: bool,
    /// The confirm to wait for until no crash undoes it.
    pub confirm: Confirm,
}

/// Settles deliveries of a session, no more than [`SETTLES_AT_ONCE`].
///
/// # Errors
/// [`BrokerError::NoDelivery`] where one is named that is not unsettled; then none is settled.
pub fn settle<W: World>(
    world: &W,
    actor: &Actor<'_>,
    session: SessionId,
    numbers: Numbers,
    outcome: Outcome,
) -> Result<SettleReport, BrokerError> {
    world.authorize(actor, Action::Settle, Object::Vhost)?;
    let only =
        world.with_outbound(actor.connection, |outbound| outbound.settle_only(session, numbers, outcome));
    if let Some(only) = only.flatten() {
        let level = settle_in_queue(world, actor.connection, only, outcome);
        let confirm = Confirm::of(level, world.appended());
        return Ok(SettleReport { settled: 1, has_more: false, confirm });
    }
    let Settled { deliveries, has_more, wakes } = world
        .with_outbound(actor.connection, |outbound| {
            outbound.settle(session, numbers, SETTLES_AT_ONCE, outcome)
        })
        .unwrap_or_default();
    if let Some(number) = numbers.named().filter(|_| deliveries.is_empty()) {
        return Err(BrokerError::NoDelivery(number));
    }
    let settled = deliveries.len();
    let level = settle_in_queues(world, actor.connection, deliveries, wakes, outcome);
    // Its own record, and those of the moves that it caused, are among those up to now.
    Ok(SettleReport { settled, has_more, confirm: Confirm::of(level, world.appended()) })
}

/// Gives unsettled messages other annotations, before they are settled: those that [`settle`] settles at once.
/// `annotate` makes the annotations of a message of those that it has, in the form of the one protocol that has such;
/// where it gives none the message keeps what it has.
///
/// # Errors
/// [`BrokerError::Refused`].
pub fn annotate<W: World>(
    world: &W,
    actor: &Actor<'_>,
    session: SessionId,
    numbers: Numbers,
    annotate: impl Fn(Option<&[u8]>) -> Option<Box<[u8]>>,
) -> Result<(), BrokerError> {
    world.authorize(actor, Action::Settle, Object::Vhost)?;
    let meant = world.with_outbound(actor.connection, |outbound| outbound.meant(session, numbers, 0));
    for unsettled in meant.unwrap_or_default().into_iter().take(SETTLES_AT_ONCE) {
        world.with_queue(unsettled.place.queue, |queue| {
            let annotated = queue.annotate(unsettled.place.sequence, &annotate);
            // Under the lock: of two records of one message the later counts.
            record_annotations(world, annotated.as_slice());
        });
    }
    Ok(())
}

/// Calls `visit` with the annotations of each unsettled message among these, as [`annotate`] would.
///
/// # Errors
/// [`BrokerError::Refused`].
pub fn visit_annotations<W: World>(
    world: &W,
    actor: &Actor<'_>,
    session: SessionId,
    numbers: Numbers,
    mut visit: impl FnMut(Option<&[u8]>),
) -> Result<(), BrokerError> {
    world.authorize(actor, Action::Settle, Object::Vhost)?;
    let meant = world.with_outbound(actor.connection, |outbound| outbound.meant(session, numbers, 0));
    for unsettled in meant.unwrap_or_default() {
        world.with_queue(unsettled.place.queue, |queue| {
            visit(queue.annotations(unsettled.place.sequence));
        });
    }
    Ok(())
}

/// Tells a queue what became of its message, and lets the consumers take more. Gives the level of the queue.
#[inline]
fn settle_in_queue<W: World>(
    world: &W,
    connection: ConnectionId,
    SettledOnly { delivery, wake, in_line }: SettledOnly,
    outcome: Outcome,
) -> Level {
    let now = world.now();
    let QueuePosition { queue: id, sequence } = delivery.place;
    let level = change_and_deliver(world, id, |queue, effects| {
        let reader = Reader { connection, id: delivery.reader };
        queue.settle_by(reader, sequence, outcome, now, effects);
        if wake.is_some_and(|wake| wake.queue == id) {
            queue.wake(reader);
        }
        queue.durability().map_or(Level::Memory, |durability| durability.level)
    });
    if in_line.is_some() {
        wake_consumers(world, connection, in_line.as_slice());
    }
    level.unwrap_or_default()
}

/// Tells the queues what became of their messages, and lets the consumers take more. Gives the highest level
/// among the queues.
pub(super) fn settle_in_queues<W: World>(
    world: &W,
    connection: ConnectionId,
    mut settled: Vec<Unsettled>,
    mut wakes: Vec<Wake>,
    outcome: Outcome,
) -> Level {
    let now = world.now();
    let mut level = Level::Memory;
    // Readers that wait for the session's window have their turns once all is settled.
    let line: Vec<Wake> = wakes.extract_if(.., |wake| wake.line.is_some()).collect();
    wakes.sort_by_key(|wake| wake.queue);
    // No two have one place, and sorting them so needs no memory.
    settled.sort_unstable_by_key(|unsettled| unsettled.place);
    for of_queue in settled.chunk_by(|a, b| a.place.queue == b.place.queue) {
        let Some(first) = of_queue.first() else {
            continue;
        };
        let queue_id = first.place.queue;
        let of_queue = change_and_deliver(world, queue_id, |queue, effects| {
            for unsettled in of_queue {
                let reader = Reader { connection, id: unsettled.reader };
                queue.settle_by(reader, unsettled.place.sequence, outcome, now, effects);
            }
            let first = wakes.partition_point(|wake| wake.queue < queue_id);
            for wake in wakes.iter().skip(first).take_while(|wake| wake.queue == queue_id) {
                queue.wake(Reader { connection, id: wake.reader });
            }
            queue.durability().map_or(Level::Memory, |durability| durability.level)
        });
        level = level.max(of_queue.unwrap_or_default());
    }
    wake_consumers(world, connection, &line);
    level
}
