//! Commits transactions: several steps take effect as one, all or none.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use super::deliver::{change_and_deliver, wake_consumers};
use super::steps::{Publish, Settle, Step, check};
use crate::authorize::Actor;
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::{AnnotatedMessage, Outcome, QueuePosition};
use crate::error::BrokerError;
use crate::id::{ConnectionId, QueueId, Reader};
use crate::message::AddressView;
use crate::outbound::{SharedHeaders, Wake};
use crate::pipeline::{
    Batch, LockedPlan, LockedQueues, Move, Proposal, PublishReport, Recorded, Reports, admit, check_bytes,
    group_bytes, is_scarce, live_receivers, publish_dead_letters, record_counts, record_effects, reply,
    send_live,
};
use crate::queue::{Arrival, Effects};
use crate::record::{
    NewRecord, annotation_records, annotations_bytes_max, count_records, counts_bytes_max, settle_records,
    settles_bytes_max,
};
use crate::room::{Purpose, Room as _};
use crate::time::Time;
use crate::world::{Counter, World};

/// The result of a transaction.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CommitReport {
    /// The result of each published message, in order.
    pub messages: Vec<PublishReport>,
    /// The sum of their receivers.
    pub receivers: usize,
    /// The confirm of the whole transaction.
    pub confirm: Confirm,
    /// A receiver that is behind; the publisher should pause for it briefly.
    pub slow_reader: Option<ConnectionId>,
}

/// Commits a transaction: checks all steps, applies them to all queues under their locks, then
/// delivers. Readers may see the effect on one queue before that on another.
///
/// # Errors
/// The error of the first step that is impossible; then nothing was done.
pub fn commit<W: World>(world: &W, actor: &Actor<'_>, steps: &[Step]) -> Result<CommitReport, BrokerError> {
    let now = world.now();
    let (publishes, settles) = check(world, actor, steps)?;
    let mut moves = moves(world, actor, &settles, now);
    if publishes.iter().any(|publish| !Publish::queues(publish).is_empty()) {
        check_bytes(world, actor.vhost)?;
    }
    let ids = queues_of(&publishes, &settles);
    let allowance = world.room().allow();
    let mut applied = Applied::new(Effects::allowed(&allowance), publishes.len());
    world.with_queues(&ids, |queues| -> Result<(), BrokerError> {
        let mut queues = LockedQueues::new(&ids, queues);
        let mut plans = plan_all(&mut queues, &publishes, now);
        refuse_full(&mut queues, &publishes, &plans)?;
        let mut records = keep_all(&mut queues, &publishes, &mut plans, now);
        let moved = moves.values().filter_map(|moved| moved.record.as_ref());
        let admitted = refuse_large(world, &mut queues, records.iter().flatten().chain(moved), &settles)
            .and_then(|()| admit_messages(world, &publishes, &records));
        if admitted.is_err() {
            queues.iter_mut().for_each(|(_, queue)| queue.give_up_sequences());
        }
        admitted?;
        // Nothing can be refused from here on.
        applied.settle(world, actor, &mut queues, steps, &mut moves, now);
        let lsns = applied.record(world, &mut records, &plans);
        applied.enqueue(&mut queues, &publishes, &plans, &lsns, now);
        record_counts(world, &mut applied.effects);
        Ok(())
    })?;

    for (publish, report) in publishes.iter().zip(&mut applied.reports) {
        publish_live(world, actor, publish, report);
    }
    for id in ids {
        change_and_deliver(world, id, |_, _| ());
    }
    wake_consumers(world, actor.connection, &applied.wakes);
    let mut dead = Vec::new();
    record_effects(world, &mut applied.effects, &mut dead);
    for (moved, lsn) in applied.moved.iter().zip(applied.lsns_of_moved) {
        moved.send(world, actor.vhost, lsn, &mut dead);
    }
    publish_dead_letters(world, actor.vhost, dead);
    let mut confirm = applied.confirm;
    if let Some(level) = applied.settle_level {
        // Moves caused by settling have their own records.
        confirm = confirm.after(world.confirm_own(level));
    }
    let messages = applied.reports;
    let receivers = messages.iter().map(|report| report.receivers).sum();
    let slow_reader = messages.iter().rev().find_map(|report| report.slow_reader);
    Ok(CommitReport { messages, receivers, confirm, slow_reader })
}

/// All queues of a transaction, in ascending order of id.
fn queues_of(publishes: &[Publish<'_>], settles: &[Settle<'_>]) -> Vec<QueueId> {
    let mut ids: Vec<QueueId> = publishes.iter().flat_map(Publish::queues).copied().collect();
    ids.extend(settles.iter().map(|settle| settle.place.queue));
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Finds the queues that take each message. Of messages with the same id the first counts.
fn plan_all(queues: &mut LockedQueues<'_, '_>, publishes: &[Publish<'_>], now: Time) -> Vec<LockedPlan> {
    let mut noted = BTreeSet::new();
    let plan_one = |publish| {
        let mut plan = LockedPlan::of(queues, Publish::queues(publish), publish.id(), now);
        let takers = plan.takers.len();
        if let Some(message) = publish.id() {
            plan.takers.retain(|id| {
                let has_dedup = queues.find(*id).is_some_and(|queue| queue.dedup().is_some());
                !has_dedup || noted.insert((*id, message))
            });
        }
        plan.had_by += takers - plan.takers.len();
        plan
    };
    publishes.iter().map(plan_one).collect()
}

/// Refuses a transaction if a queue has no room for all its messages.
fn refuse_full(
    queues: &mut LockedQueues<'_, '_>,
    publishes: &[Publish<'_>],
    plans: &[LockedPlan],
) -> Result<(), BrokerError> {
    let mut arriving = BTreeMap::<QueueId, (u64, u64)>::new();
    for (publish, plan) in publishes.iter().zip(plans) {
        for id in &plan.takers {
            let total = arriving.entry(*id).or_default();
            total.0 += 1;
            total.1 += publish.publication.view().body.len() as u64;
        }
    }
    for (id, (messages, bytes)) in arriving {
        if let Some(queue) = queues.find(id)
            && queue.refuses(messages, bytes)
        {
            return Err(BrokerError::QueueFull(queue.name().clone()));
        }
    }
    Ok(())
}

/// Builds the records of all messages to be stored.
fn keep_all(
    queues: &mut LockedQueues<'_, '_>,
    publishes: &[Publish<'_>],
    plans: &mut [LockedPlan],
    now: Time,
) -> Vec<Option<NewRecord>> {
    let mut keep_one = |(publish, plan): (&Publish<'_>, &mut LockedPlan)| {
        let address = AddressView::new(&publish.route.as_ref()?.address);
        plan.keep(queues, &publish.publication, &address, now)
    };
    publishes.iter().zip(plans).map(&mut keep_one).collect()
}

/// Refuses a transaction if its records exceed the size of one group.
fn refuse_large<'r, W: World>(
    world: &W,
    queues: &mut LockedQueues<'_, '_>,
    records: impl Iterator<Item = &'r NewRecord>,
    settles: &[Settle<'_>],
) -> Result<(), BrokerError> {
    let mut is_kept =
        |place: &QueuePosition| queues.find(place.queue).is_some_and(|queue| queue.durability().is_some());
    let (mut kept, mut dying) = (0, 0);
    for Settle { outcome, .. } in settles.iter().filter(|settle| is_kept(&settle.place)) {
        kept += 1;
        // A message that dies may need a record as a pending dead letter.
        dying += usize::from(*outcome != Outcome::Accept);
    }
    let mut annotations_bytes = |settle: &Settle<'_>| {
        let queue = queues.find(settle.place.queue)?;
        let merged = settle.annotations?.merged(queue.annotations(settle.place.sequence))?;
        Some(annotations_bytes_max(merged.len()))
    };
    let annotations: usize = settles.iter().filter_map(&mut annotations_bytes).sum();
    let bytes = group_bytes(records) + settles_bytes_max(kept) + counts_bytes_max(dying) + annotations;
    let bytes_max = world.group_bytes_max();
    if bytes > bytes_max { Err(BrokerError::TransactionTooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// Refuses a transaction if the journal takes none of its messages now.
fn admit_messages<W: World>(
    world: &W,
    publishes: &[Publish<'_>],
    records: &[Option<NewRecord>],
) -> Result<(), BrokerError> {
    let kept = publishes.iter().zip(records).find(|(_, record)| record.is_some());
    let Some((publish, _)) = kept else { return Ok(()) };
    admit(world, Purpose::Publish, publish.subject)
}

/// Delivers a message of a transaction to its inbox or live receivers.
fn publish_live<W: World>(world: &W, actor: &Actor<'_>, publish: &Publish<'_>, report: &mut PublishReport) {
    world.published(actor, 1, publish.publication.view().bytes());
    let Some(route) = &publish.route else {
        report.receivers += usize::from(reply(world, actor.vhost, publish.subject, &publish.publication));
        return;
    };
    let address = AddressView::new(&route.address);
    let batch = Batch::new(actor.vhost, &address, slice::from_ref(&publish.publication));
    let mut shared = SharedHeaders::for_receivers(live_receivers(route));
    send_live(world, route, batch, &mut shared, &mut Reports::Sum(report));
    if route.is_empty() {
        world.count(Counter::Unroutable);
    }
}

/// The state of a transaction while it is applied to its queues.
struct Applied {
    /// The results of its messages.
    reports: Vec<PublishReport>,
    confirm: Confirm,
    effects: Effects,
    /// Messages that are returned with annotations to record.
    annotated: Vec<AnnotatedMessage>,
    wakes: Vec<Wake>,
    /// Dead letters that move by records of the transaction, and the numbers of those records.
    moved: Vec<Move>,
    lsns_of_moved: Vec<Lsn>,
    /// The highest level of the durable queues in which it settles deliveries.
    settle_level: Option<Level>,
}

impl Applied {
    fn new(effects: Effects, publishes: usize) -> Applied {
        Applied {
            reports: vec![PublishReport::default(); publishes],
            confirm: Confirm::NOW,
            effects,
            annotated: Vec::new(),
            wakes: Vec::new(),
            moved: Vec::new(),
            lsns_of_moved: Vec::new(),
            settle_level: None,
        }
    }

    /// Settles the deliveries of all steps; dead letters move as prepared in `moves`.
    fn settle<W: World>(
        &mut self,
        world: &W,
        actor: &Actor<'_>,
        queues: &mut LockedQueues<'_, '_>,
        steps: &[Step],
        moves: &mut BTreeMap<QueuePosition, Move>,
        now: Time,
    ) {
        for step in steps {
            let Step::Settle { session, numbers, outcome, annotations } = step else { continue };
            // No limit: a transaction is applied as a whole, and its size is bounded.
            let settled = world
                .with_outbound(actor.connection, |outbound| {
                    outbound.settle(*session, *numbers, usize::MAX, *outcome)
                })
                .unwrap_or_default();
            self.wakes.extend(settled.wakes);
            for unsettled in settled.deliveries {
                let Some(queue) = queues.find(unsettled.place.queue) else { continue };
                if let Some(annotations) = annotations {
                    let merge = |before: Option<&[u8]>| annotations.merged(before);
                    self.annotated.extend(queue.annotate(unsettled.place.sequence, merge));
                }
                let died = self.effects.dead().len();
                let reader = Reader { connection: actor.connection, id: unsettled.reader };
                queue.settle_by(reader, unsettled.place.sequence, *outcome, now, &mut self.effects);
                // A dead letter moves by the records of the transaction.
                if self.effects.dead().len() > died
                    && let Some(prepared) = moves.remove(&unsettled.place)
                {
                    self.effects.rare_mut().dead.pop();
                    self.moved.push(prepared);
                }
                self.settle_level = self.settle_level.max(queue.durability().map(|kept| kept.level));
            }
        }
    }

    /// Records everything as one group; returns the numbers of the messages' records.
    fn record<W: World>(
        &mut self,
        world: &W,
        messages: &mut [Option<NewRecord>],
        plans: &[LockedPlan],
    ) -> Vec<Lsn> {
        let mut proposal = Proposal::default();
        let places: Vec<_> = messages.iter_mut().map(|record| proposal.add(record.take())).collect();
        let moved: Vec<_> = self.moved.iter_mut().map(|moved| proposal.add(moved.record.take())).collect();
        let mut settled = std::mem::take(&mut self.effects.settled);
        settled.extend(self.moved.iter().filter_map(Move::record_ref));
        proposal.extend(settle_records(&settled));
        if !is_scarce(world) {
            proposal.extend(annotation_records(&self.annotated));
        }
        // Settling may leave dead letters pending, which are recorded as delivery counts.
        proposal.extend(count_records(&self.effects.take_pending_dead_letters()));
        let recorded = proposal.record_together(world);
        self.lsns_of_moved = moved.into_iter().map(|place| recorded.at(place)).collect();
        self.confirm = confirm_of_all(plans, self.settle_level, recorded);
        for (report, plan) in self.reports.iter_mut().zip(plans) {
            report.confirm = plan.confirm(recorded.through());
        }
        places.into_iter().map(|place| recorded.at(place)).collect()
    }

    /// Enqueues each message in the queues that take it.
    fn enqueue(
        &mut self,
        queues: &mut LockedQueues<'_, '_>,
        publishes: &[Publish<'_>],
        plans: &[LockedPlan],
        lsns: &[Lsn],
        now: Time,
    ) {
        let stored = publishes.iter().zip(plans).zip(lsns.iter().zip(&mut self.reports));
        for ((publish, plan), (lsn, report)) in stored {
            let Some(route) = &publish.route else { continue };
            let address = AddressView::new(&route.address);
            let arrival = Arrival { address: &address, deaths: None, lsn: *lsn, now };
            plan.enqueue(queues, publish.id(), &arrival, report, |_, queue| {
                queue.enqueue(&publish.publication, &arrival, &mut self.effects);
                Ok(())
            });
        }
    }
}

/// The confirm of a whole transaction. It promises the lowest level of its messages, or, if it
/// publishes none, the level of what it settles.
fn confirm_of_all(plans: &[LockedPlan], settle_level: Option<Level>, recorded: Recorded) -> Confirm {
    // For a message that every queue already had, the earlier confirm counts instead.
    let is_new = |plan: &&LockedPlan| !plan.takers.is_empty() || plan.had_by == 0;
    let new = plans.iter().filter(is_new).map(|plan| plan.durability.level).min();
    let wait = plans.iter().map(|plan| plan.durability.wait).max().max(settle_level);
    let level = new.or(settle_level).unwrap_or_default();
    let confirm = match recorded.through() {
        Lsn::NONE => Confirm::NOW,
        through => Confirm::of(wait.unwrap_or_default(), through).promising(level),
    };
    match plans.iter().filter_map(|plan| plan.earlier).reduce(Confirm::and) {
        Some(earlier) if new.is_some() => confirm.and(earlier),
        // Settling is waited for too, but does not affect the level.
        Some(earlier) => earlier.after(confirm),
        None => confirm,
    }
}

/// Prepares the moves of messages that die by being settled.
fn moves<W: World>(
    world: &W,
    actor: &Actor<'_>,
    settles: &[Settle<'_>],
    now: Time,
) -> BTreeMap<QueuePosition, Move> {
    let mut moves = BTreeMap::new();
    for settle in settles.iter().filter(|settle| settle.outcome != Outcome::Accept) {
        let Settle { place, outcome, annotations } = *settle;
        let death = world.with_queue(place.queue, |queue| queue.death(place.sequence, outcome, now));
        let Some(mut dead) = death.flatten() else { continue };
        if let Some(annotations) = annotations {
            dead.annotate(|before| annotations.merged(before));
        }
        moves.insert(place, Move::of(world, actor.vhost, dead));
    }
    moves
}
