//! Enqueues a recorded batch; each queue is locked once for the whole batch where possible.

use super::batch::Batch;
use super::follow_ups::FollowUps;
use super::offer::offer;
use super::own::record_in_stream;
use super::record::{record_again, record_effects};
use super::report::Reports;
use crate::delivery::QueuePosition;
use crate::id::QueueId;
use crate::outbound::SharedHeaders;
use crate::queue::{Arrival, DeadLetter, Effects};
use crate::room::Room;
use crate::world::World;

/// Enqueues a batch in its queues; `shared` serves all consumers that receive it at once. Messages
/// that a full queue drops or refuses are added to `dead`.
#[inline]
pub(crate) fn enqueue<W: World>(
    world: &W,
    queues: &[QueueId],
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) {
    match queues {
        [] => {}
        [queue] => enqueue_in_one(world, *queue, batch, shared, reports, dead),
        queues => enqueue_in_each(world, queues, batch, shared, reports, dead),
    }
}

#[inline(never)]
fn enqueue_in_each<W: World>(
    world: &W,
    queues: &[QueueId],
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) {
    match queues {
        queues if batch.messages.len() > 1 && are_read_apart(world, queues) => {
            queues.iter().for_each(|queue| enqueue_in_one(world, *queue, batch, shared, reports, dead));
        }
        // Message by message, because one session may consume from several of the queues (decision
        // 0072).
        queues => {
            for (index, batch) in batch.each() {
                let mut reports = reports.one(index);
                queues
                    .iter()
                    .for_each(|queue| enqueue_in_one(world, *queue, batch, shared, &mut reports, dead));
            }
        }
    }
}

/// Whether each queue has at most one consumer, and no two of them share a connection. A consumer
/// added meanwhile finds a queue in which messages already waited.
fn are_read_apart<W: World>(world: &W, queues: &[QueueId]) -> bool {
    let mut connections = Vec::with_capacity(queues.len());
    for queue in queues {
        let readers = world.with_queue(*queue, |queue| (queue.consumers_len(), queue.consumers().next()));
        match readers {
            None | Some((0, _)) => {}
            Some((1, Some(reader))) if !connections.contains(&reader.connection) => {
                connections.push(reader.connection);
            }
            Some(_) => return false,
        }
    }
    true
}

#[inline(never)]
fn enqueue_in_one<W: World>(
    world: &W,
    id: QueueId,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) {
    enqueue_in(world, id, batch, shared, reports, dead);
}

/// Enqueues a batch in one queue. Inlined for the usual case of a plain message to a single queue.
#[inline(always)]
pub(crate) fn enqueue_in<W: World>(
    world: &W,
    id: QueueId,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) {
    let Batch { address, messages, deaths, first, .. } = batch;
    let now = world.now();
    let mut effects = Effects::allowed(&world.room().allow_arrival());
    let follow_ups = world.with_queue(id, |queue| {
        // A dead letter that returns without a rejection would cycle for ever.
        if deaths.is_some_and(|deaths| deaths.is_cycle(queue.name())) {
            return None;
        }
        for (index, publication) in messages.iter().enumerate() {
            let lsn = match first.plus(index) {
                _ if queue.is_stream() => record_in_stream(world, queue, publication, (address, deaths), now),
                lsn if queue.may_be_purged(lsn) => {
                    let recorded = record_again(world, queue, publication, (address, deaths), (lsn, now));
                    reports.change(index, |report| report.confirm = report.confirm.after(recorded.1));
                    recorded.0
                }
                lsn => lsn,
            };
            if let Some(observer) = world.observer() {
                observer.enqueuing(QueuePosition { queue: id, sequence: queue.next_sequence }, queue);
            }
            let published = queue.publish(
                publication,
                &Arrival { address, deaths, lsn, now },
                &mut |reader, delivery| offer(world, id, reader, delivery, shared),
                &mut effects,
            );
            reports.change(index, |report| match published {
                Ok(_) => report.receivers += 1,
                Err(_) => report.refused_by = Some(queue.name().clone()),
            });
        }
        FollowUps::of(world, (id, queue), &mut effects, now)
    });
    if let Some(follow_ups) = follow_ups.flatten() {
        follow_ups.run(world, id);
    }
    record_effects(world, &mut effects, dead);
}
