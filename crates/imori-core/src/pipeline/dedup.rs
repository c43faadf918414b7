//! Publishes messages under the locks of their queues: messages with ids to queues that de-duplicate, and messages to
//! streams.

use super::apart::append_apart;
use super::batch::Batch;
use super::follow_ups::FollowUps;
use super::locked::{LockedPlan, LockedQueues};
use super::offer::offer;
use super::proposal::{Proposal, record_one};
use super::record::record_effects;
use super::report::{PublishReport, Reports};
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::QueuePosition;
use crate::id::QueueId;
use crate::limits::SEEN_BYTES_MAX;
use crate::message::{Property, Publication};
use crate::outbound::SharedHeaders;
use crate::queue::{Arrival, DeadLetter, Effects, Queue};
use crate::record::{NewRecord, RecordKind, encode_dedup_entries};
use crate::room::{Purpose, Room as _};
use crate::route::Route;
use crate::stream::StreamRefusal;
use crate::time::Time;
use crate::world::World;

/// Records a batch and publishes it to the queues of a route that have not had its message ids.
/// Messages that a full queue drops or refuses are added to `dead`.
#[inline(never)]
pub(crate) fn enqueue_locked<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) {
    let now = world.now();
    let mut effects = Effects::allowed(&world.room().allow_arrival());
    let arrival = Arrival { address: batch.address, deaths: None, lsn: Lsn::NONE, now };
    let follow_ups = world.with_queues(&route.queues, |queues| {
        let mut queues = LockedQueues::new(&route.queues, queues);
        for (index, publication) in batch.messages.iter().enumerate() {
            let mut report = PublishReport::default();
            let confirm = enqueue_one(
                world,
                &mut queues,
                &route.queues,
                publication,
                arrival,
                &mut report,
                &mut effects,
            );
            reports.confirm(index, confirm);
            reports.change(index, |sum| {
                sum.receivers += report.receivers;
                sum.refused_by = report.refused_by.or(sum.refused_by.take());
            });
        }
        let each = queues
            .iter_mut()
            .filter_map(|(id, queue)| Some((id, FollowUps::of(world, (id, queue), &mut effects, now)?)));
        each.collect::<Vec<_>>()
    });
    follow_ups.into_iter().for_each(|(id, follow_ups)| follow_ups.run(world, id));
    record_effects(world, &mut effects, dead);
}

fn enqueue_one<W: World>(
    world: &W,
    queues: &mut LockedQueues<'_, '_>,
    route: &[QueueId],
    publication: &Publication<'_>,
    mut arrival: Arrival<'_>,
    report: &mut PublishReport,
    effects: &mut Effects,
) -> Confirm {
    // The ids of a batch are checked when it is committed.
    let is_in_batch = publication.asks().is_some_and(|asked| asked.batch.is_some());
    let message_id = publication.view().property(Property::MessageId).filter(|_| !is_in_batch);
    let mut plan = LockedPlan::of(queues, route, message_id, arrival.now);
    answer_duplicates(queues, route, &plan, publication);
    let is_persistent = publication.view().properties.is_persistent;
    let mut apart = None;
    plan.takers.retain(|id| {
        let Some(queue) = queues.find(*id) else { return false };
        let is_on_disk = queue.durability().is_some_and(|durability| durability.level > Level::Memory);
        let purpose = if queue.is_stream() { Purpose::Store } else { Purpose::Publish };
        let has_room = match is_on_disk && (queue.is_stream() || is_persistent) {
            true => world.admits(purpose).map_err(StreamRefusal::Unavailable),
            false => Ok(()),
        };
        let admits = match has_room {
            Ok(()) if queue.appends_apart(publication) => {
                match append_apart(world, queue, publication, &arrival, effects) {
                    Ok(confirm) => {
                        report.receivers += 1;
                        apart = Some(apart.map_or(confirm, |other: Confirm| other.and(confirm)));
                        return false;
                    }
                    Err(refusal) => Err(refusal),
                }
            }
            Ok(()) => queue.stream_admits(publication, arrival.address.subject()),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = admits {
            queue.refuse_in_stream(publication, refusal);
            report.refused_by = Some(queue.name().clone());
            return false;
        }
        // A refused message has no record, so its id must not be recorded as taken.
        let is_refused = queue.dedup().is_some()
            && !queue.is_stream()
            && queue.refuses(1, publication.view().body.len() as u64);
        if is_refused {
            queue.refuse(publication, &arrival, effects);
            report.refused_by = Some(queue.name().clone());
        }
        !is_refused
    });
    let mut proposal = Proposal::default();
    proposal.add(plan.keep(queues, publication, arrival.address, arrival.now));
    let recorded = proposal.record(world);
    arrival.lsn = recorded.first();
    plan.enqueue(queues, message_id, &arrival, report, |id, queue| {
        if let Some(observer) = world.observer() {
            observer.enqueuing(QueuePosition { queue: id, sequence: queue.next_sequence }, queue);
        }
        let taken = queue.publish(
            publication,
            &arrival,
            &mut |reader, delivery| offer(world, id, reader, delivery, &mut SharedHeaders::for_receivers(1)),
            effects,
        );
        taken.map(drop)
    });
    let confirm = plan.confirm(recorded.through());
    match apart {
        Some(apart) if plan.takers.is_empty() && plan.earlier.is_none() => apart,
        Some(apart) => confirm.and(apart),
        None => confirm,
    }
}

/// Answers the publisher of a message that streams have had before.
fn answer_duplicates(
    queues: &mut LockedQueues<'_, '_>,
    route: &[QueueId],
    plan: &LockedPlan,
    publication: &Publication<'_>,
) {
    let (Some(to), Some(id)) = (publication.answer_to(), publication.view().property(Property::MessageId))
    else {
        return;
    };
    for queue in route.iter().filter(|queue| !plan.takers.contains(queue)) {
        if let Some(queue) = queues.find(*queue) {
            queue.answer_duplicate(to, id);
        }
    }
}

/// Records again the ids of a queue that have records below `floor`. Once the new records are
/// durable, the ids need no journal record below it. The queue's messages are not affected.
pub fn renew_seen<W: World>(world: &W, queue: QueueId, floor: Lsn) {
    let now = world.now();
    let append = |record| record_one(world, record);
    // Releases the queue's lock between two records.
    while world.with_queue(queue, |queue| renew_some_seen(queue, floor, now, append)) == Some(true) {}
}

/// Records as many ids again as one record holds, or then a part of the state of a stream. The caller holds the queue's lock; `append`
/// returns the number of the record. Returns whether there were any.
pub fn renew_some_seen(
    queue: &mut Queue,
    floor: Lsn,
    now: Time,
    append: impl FnOnce(NewRecord) -> Lsn,
) -> bool {
    let durability = queue.durability();
    let below = queue.dedup().map(|dedup| dedup.below(floor, SEEN_BYTES_MAX, now)).unwrap_or_default();
    if below.is_empty() {
        return queue.renew_stream(floor, append);
    }
    let Some((durability, dedup)) = durability.zip(queue.dedup()) else { return false };
    dedup
        .renew(&below, append(NewRecord::new(RecordKind::Seen, encode_dedup_entries(durability.id, &below))));
    true
}
