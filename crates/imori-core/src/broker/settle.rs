//! Settles deliveries and grants credit to consumers.

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

/// Grants credit to a consumer. A draining consumer gets all ready messages, including those on
/// disk, and then gives up its remaining credit, which its encoder announces through
/// [`drained`](crate::outbound::Encoder::drained), nearly always before this returns.
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

/// Extends a session's window of frames up to, but excluding, serial number `end`.
pub fn grant_frames<W: World>(world: &W, actor: &Actor<'_>, session: SessionId, end: u32) {
    let wake = world.with_outbound(actor.connection, |outbound| outbound.grant_frames(session, end));
    wake_consumers(world, actor.connection, wake.flatten().as_slice());
}

/// The result of settling deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettleReport {
    /// The number of settled deliveries.
    pub settled: usize,
    /// Whether there is more than one command may settle at once. The caller must settle the rest
    /// after others had a turn. A delivery named by its number is then still unsettled.
    pub has_more: bool,
    /// The confirm after which the settlement survives a crash.
    pub confirm: Confirm,
}

/// Settles deliveries of a session, at most [`SETTLES_AT_ONCE`].
///
/// # Errors
/// [`BrokerError::NoDelivery`] if a delivery named by number is not unsettled; then none is
/// settled.
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
        let confirm = world.confirm_own(level);
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
    Ok(SettleReport { settled, has_more, confirm: world.confirm_own(level) })
}

/// Replaces the annotations of unsettled messages before they are settled, for the deliveries that
/// [`settle`] would settle at once. `annotate` derives them from the present ones, in the format of
/// the one protocol that has annotations; `None` leaves a message as it is.
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
            // Under the lock, because the later of two records of one message counts.
            record_annotations(world, annotated.as_slice());
        });
    }
    Ok(())
}

/// Calls `visit` with the annotations of each unsettled message that [`annotate`] would change.
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

/// Settles a delivery in its queue and wakes consumers that may take more. Returns the queue's
/// level.
#[inline]
fn settle_in_queue<W: World>(
    world: &W,
    connection: ConnectionId,
    SettledOnly { delivery, wake, in_line }: SettledOnly,
    outcome: Outcome,
) -> Level {
    let now = world.now();
    let QueuePosition { queue: id, sequence } = delivery.place;
    if let Some(observer) = world.observer() {
        observer.settling(delivery.place, connection, outcome);
    }
    let level = change_and_deliver(world, id, |queue, effects| {
        let reader = Reader { connection, id: delivery.reader };
        queue.settle_by(reader, sequence, outcome, now, effects);
        if wake.is_some_and(|wake| wake.queue == id) {
            queue.wake(reader);
        }
        queue.level()
    });
    if in_line.is_some() {
        wake_consumers(world, connection, in_line.as_slice());
    }
    level.unwrap_or_default()
}

/// Settles deliveries in their queues and wakes consumers that may take more. Returns the highest
/// level among the queues.
pub(super) fn settle_in_queues<W: World>(
    world: &W,
    connection: ConnectionId,
    mut settled: Vec<Unsettled>,
    mut wakes: Vec<Wake>,
    outcome: Outcome,
) -> Level {
    let now = world.now();
    let mut level = Level::Memory;
    // Readers waiting for the session's window have their turn once everything is settled.
    let line: Vec<Wake> = wakes.extract_if(.., |wake| wake.line.is_some()).collect();
    wakes.sort_by_key(|wake| wake.queue);
    // Places are unique, and an unstable sort allocates no memory.
    settled.sort_unstable_by_key(|unsettled| unsettled.place);
    for of_queue in settled.chunk_by(|a, b| a.place.queue == b.place.queue) {
        let Some(first) = of_queue.first() else {
            continue;
        };
        let queue_id = first.place.queue;
        if let Some(observer) = world.observer() {
            of_queue.iter().for_each(|settled| observer.settling(settled.place, connection, outcome));
        }
        let of_queue = change_and_deliver(world, queue_id, |queue, effects| {
            for unsettled in of_queue {
                let reader = Reader { connection, id: unsettled.reader };
                queue.settle_by(reader, unsettled.place.sequence, outcome, now, effects);
            }
            let first = wakes.partition_point(|wake| wake.queue < queue_id);
            for wake in wakes.iter().skip(first).take_while(|wake| wake.queue == queue_id) {
                queue.wake(Reader { connection, id: wake.reader });
            }
            queue.level()
        });
        level = level.max(of_queue.unwrap_or_default());
    }
    wake_consumers(world, connection, &line);
    level
}
