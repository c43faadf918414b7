//! Journal records of messages that enter and leave durable queues. A message is recorded before it
//! is enqueued, so that no queue holds a message without its record.

use std::sync::Arc;

use super::batch::Batch;
use super::plan::{Plan, plan_dead_letter};
use super::proposal::Proposal;
use super::report::Reports;
use crate::confirm::{Confirm, Lsn};
use crate::delivery::{AnnotatedMessage, RecordRef};
use crate::id::DurableQueueId;
use crate::message::{AddressView, DeathReason, Deaths, Publication};
use crate::queue::{DeadLetter, Durability, Effects, Queue, RareEffects};
use crate::record::{
    NewRecord, RecordKind, StreamRecord, annotation_records, count_records, encode_message, purge_records,
    ranges_of, removed_records, settle_records,
};
use crate::room::{Room as _, RoomState};
use crate::route::Route;
use crate::time::Time;
use crate::world::{Counter, Latency, World};

/// Records the messages of a batch as planned, and notes their confirms. Returns the first record.
#[inline]
pub(crate) fn record<W: World>(
    world: &W,
    plan: &Plan<'_>,
    batch: &Batch<'_>,
    reports: &mut Reports<'_>,
) -> Lsn {
    let Some(durability) = &plan.durability else { return Lsn::NONE };
    let now = world.now();
    let encode = |message| message_record(message, batch.address, None, &durability.queues, now);
    let recorded = Proposal::of(batch.messages.iter().map(encode).collect()).record(world);
    for index in 0..batch.messages.len() {
        let is_last = index + 1 == batch.messages.len();
        let lsn = if is_last { recorded.through() } else { recorded.first().plus(index) };
        let confirm = Confirm::of(durability.wait, lsn).promising(durability.level);
        reports.confirm(index, confirm);
    }
    recorded.first()
}

/// Records in one group that a dead letter leaves its queue and enters those of its route; returns
/// the number of the new record. Records nothing and returns `None` if the group is too large for
/// the journal.
pub(crate) fn record_move<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    from: Option<RecordRef>,
) -> Option<Lsn> {
    let Some(message) = moved_record(world, route, batch) else {
        record_settled(world, from.as_slice());
        return Some(Lsn::NONE);
    };
    let mut proposal = Proposal::of(vec![message]);
    proposal.extend(settle_records(from.as_slice()));
    (proposal.bytes() <= world.group_bytes_max()).then(|| proposal.record_together(world).first())
}

/// Records a message again for a queue that it reaches only now, because a purge has named its record since. Returns
/// its new record, and the confirm for it.
#[cold]
pub(crate) fn record_again<W: World>(
    world: &W,
    queue: &Queue,
    publication: &Publication<'_>,
    (address, deaths): (&AddressView<'_>, Option<&Arc<Deaths>>),
    (lsn, now): (Lsn, Time),
) -> (Lsn, Confirm) {
    let Some(Durability { id, level }) = queue.durability().filter(|_| queue.keeps(lsn)) else {
        return (lsn, Confirm::NOW);
    };
    let record = message_record(publication, address, deaths.map(|deaths| &**deaths), &[id], now);
    let mut proposal = Proposal::of(vec![record]);
    proposal.extend(settle_records(&[RecordRef { queue: id, lsn }]));
    let recorded = proposal.record_together(world);
    (recorded.first(), Confirm::of(level, recorded.through()))
}

/// The record of a dead letter for the durable queues of its route, if there are any.
pub(crate) fn moved_record<W: World>(world: &W, route: &Route, batch: &Batch<'_>) -> Option<NewRecord> {
    let (message, deaths) = batch.messages.first().zip(batch.deaths)?;
    if route.queues.is_empty() || !message.view().properties.is_persistent {
        return None;
    }
    let queues = plan_dead_letter(world, route, deaths).queues;
    let encode = || message_record(message, batch.address, Some(deaths), &queues, world.now());
    (!queues.is_empty()).then(encode)
}

/// Records the effects of a queue change, except those of [`record_counts`], and adds its dead
/// letters to `dead_letters`.
#[inline]
pub(crate) fn record_effects<W: World>(world: &W, effects: &mut Effects, dead_letters: &mut Vec<DeadLetter>) {
    if !effects.are_none() {
        record_some_effects(world, effects, dead_letters);
    }
}

#[inline(never)]
fn record_some_effects<W: World>(world: &W, effects: &mut Effects, dead_letters: &mut Vec<DeadLetter>) {
    debug_assert!(
        effects.counted.is_empty() && effects.pending_dead_letters().is_empty(),
        "they are recorded while their queue is locked"
    );
    record_settled(world, &effects.settled);
    if let Some(waited) = effects.waited {
        world.observe(Latency::QueueWait, waited);
    }
    let Some(rare) = effects.take_rare() else { return };
    let RareEffects { dead, purged, removed, acked, died, .. } = *rare;
    let acked = acked.into_iter().map(|(queue, consumer, sequences)| {
        StreamRecord::Acked(queue, consumer, ranges_of(sequences)).record()
    });
    let records = purge_records(&purged).into_iter().chain(removed_records(&removed)).chain(acked);
    Proposal::of(records.collect()).record(world);
    dead_letters.extend(dead);
    for (reason, times) in DeathReason::ALL.into_iter().zip(died) {
        if times > 0 {
            world.count_many(Counter::died(reason), times as usize);
        }
    }
}

/// Records delivery counts. The caller holds the queue's lock, because the later of two records of
/// one message counts, so the records must have the order of the events.
#[inline]
pub(crate) fn record_counts<W: World>(world: &W, effects: &mut Effects) {
    if effects.have_counts() {
        record_some_counts(world, effects);
    }
}

#[inline(never)]
fn record_some_counts<W: World>(world: &W, effects: &mut Effects) {
    let mut counted = std::mem::take(&mut effects.counted);
    // A pending dead letter stays in the queue; its record is a delivery count too.
    counted.append(&mut effects.take_pending_dead_letters());
    Proposal::of(count_records(&counted)).record(world);
}

/// Records annotations of messages. Their queues must be locked, for the same reason as in
/// [`record_counts`]. Skipped when the disk is nearly full: the messages are about to be settled,
/// which frees space.
pub(crate) fn record_annotations<W: World>(world: &W, messages: &[AnnotatedMessage]) {
    if !messages.is_empty() && !is_scarce(world) {
        Proposal::of(annotation_records(messages)).record(world);
    }
}

/// Whether the disk is too full to record annotations.
pub(crate) fn is_scarce<W: World>(world: &W) -> bool {
    world.room().state() == RoomState::Scarce
}

/// Records that queues no longer hold these messages; returns the number of the last record.
pub(crate) fn record_settled<W: World>(world: &W, settled: &[RecordRef]) -> Lsn {
    Proposal::of(settle_records(settled)).record(world).through()
}

/// The record of a message for these queues.
pub(crate) fn message_record(
    publication: &Publication<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    queues: &[DurableQueueId],
    now: Time,
) -> NewRecord {
    let payload = encode_message(&publication.view(), address, deaths, queues, now);
    NewRecord::new(RecordKind::Message, payload)
}
