//! Several steps become one: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use super::actor::Actor;
use super::deliver::{change_and_deliver, wake_consumers};
use super::distribute::{Move, PublishReport, bury, distribute_live, live_receivers, reply};
use super::letter::Letter;
use super::move_room::MoveRoom;
use super::once::{Sifted, find, note, sift};
use super::record::{Keepers, group_bytes, record_counts, record_effects};
use super::steps::{Resolved, Settles, Step, check};
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::{Outcome, Place};
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::{AddressView, Publication};
use crate::outbound::{SharedHeaders, Wake};
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{NewRecord, count_records, counts_bytes_max, settle_records, settles_bytes_max};
use crate::time::Time;
use crate::world::{Event, World};

/// The queues of a transaction, by rising id, and those of them that are there, locked.
type Locked<'a, 'q> = (&'a [QueueId], &'a mut [Option<&'q mut Queue>]);

/// Commits a transaction (ARCHITECTURE, transactions): checks everything, then applies all of it to the
/// queues, locked together, then delivers. Readers may see one queue's part before another's.
///
/// # Errors
/// What the first step that is not possible would have met; then nothing was done.
pub fn commit<W: World>(world: &W, actor: &Actor<'_>, steps: &[Step]) -> Result<PublishReport, BrokerError> {
    let now = world.now();
    let (publishes, settles) = check(world, actor, steps)?;
    let mut moves = moves(world, actor, &settles, now);
    let ids = queues_of(&publishes, &settles);
    let room = MoveRoom::of(world);
    let mut applied = Applied { effects: room.effects(), ..Applied::default() };
    world.with_queues(&ids, |queues| -> Result<(), BrokerError> {
        let sifted = sift_all(&ids, queues, &publishes, now);
        refuse_full((&ids, queues), &publishes, &sifted)?;
        let mut messages = keep((&ids, queues), &publishes, &sifted, now);
        let records = messages.iter().filter_map(|kept| kept.record.as_ref());
        let records = records.chain(moves.values().filter_map(|moved| moved.record.as_ref()));
        refuse_large(world, (&ids, queues), records, &settles)?;
        // Nothing can be refused from here on.
        applied.settle(world, actor, (&ids, queues), steps, &mut moves, now);
        let lsns = applied.record(world, &mut messages, &sifted);
        let stored = publishes.iter().zip(&sifted).zip(messages.iter().zip(lsns));
        for ((publish, sifted), (kept, lsn)) in stored {
            applied.enqueue((&ids, queues), publish, sifted, (kept, lsn), now);
        }
        record_counts(world, &mut applied.effects);
        Ok(())
    })?;

    for publish in &publishes {
        publish_live(world, actor, publish, &mut applied.report);
    }
    for id in ids {
        change_and_deliver(world, id, |_, _| ());
    }
    wake_consumers(world, actor.connection, &applied.wakes);
    let mut dead = record_effects(world, applied.effects);
    for (moved, lsn) in applied.moved.iter().zip(applied.lsns_of_moved) {
        moved.send(world, actor.vhost, lsn, &mut |more| dead.extend(more));
    }
    bury(world, actor.vhost, dead);
    let mut report = applied.report;
    if let Some(level) = applied.settle_level {
        // What it caused has moved by records of its own, which are among those up to now.
        report.confirm = report.confirm.after(Confirm::of(level, world.appended()));
    }
    Ok(report)
}

/// All queues of a transaction, by rising id.
fn queues_of(publishes: &[Resolved<'_>], settles: &Settles) -> Vec<QueueId> {
    let routes = publishes.iter().filter_map(|publish| publish.route.as_ref());
    let mut ids: Vec<QueueId> = routes.flat_map(|route| route.queues.iter().copied()).collect();
    ids.extend(settles.iter().map(|(place, _)| place.queue));
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Refuses a transaction of which a queue would not take all that it publishes.
fn refuse_full(
    (ids, queues): Locked<'_, '_>,
    publishes: &[Resolved<'_>],
    sifted: &[Sifted],
) -> Result<(), BrokerError> {
    let mut arriving = BTreeMap::<QueueId, (u64, u64)>::new();
    for (publish, sifted) in publishes.iter().zip(sifted) {
        for id in &sifted.takers {
            let total = arriving.entry(*id).or_default();
            total.0 += 1;
            total.1 += publish.message.view().body.len() as u64;
        }
    }
    for (id, (messages, bytes)) in arriving {
        if let Some(queue) = find((ids, queues), id)
            && queue.refuses(messages, bytes)
        {
            return Err(BrokerError::QueueFull(queue.name().clone()));
        }
    }
    Ok(())
}

/// Refuses a transaction whose records are more than can be written as one.
fn refuse_large<'r, W: World>(
    world: &W,
    (ids, queues): Locked<'_, '_>,
    records: impl Iterator<Item = &'r NewRecord>,
    settles: &Settles,
) -> Result<(), BrokerError> {
    let mut is_kept =
        |place: &Place| find((ids, queues), place.queue).is_some_and(|queue| queue.durability().is_some());
    let (mut kept, mut dying) = (0, 0);
    for (_, outcome) in settles.iter().filter(|(place, _)| is_kept(place)) {
        kept += 1;
        // Of each that may die it may be said that it lingers.
        dying += usize::from(*outcome != Outcome::Accept);
    }
    let bytes = group_bytes(records) + settles_bytes_max(kept) + counts_bytes_max(dying);
    let bytes_max = world.group_bytes_max();
    if bytes > bytes_max { Err(BrokerError::TransactionTooLarge { bytes, bytes_max }) } else { Ok(()) }
}

/// Makes the records of all messages that are kept.
fn keep(
    (ids, queues): Locked<'_, '_>,
    publishes: &[Resolved<'_>],
    sifted: &[Sifted],
    now: Time,
) -> Vec<Kept> {
    let mut keep_one = |(publish, sifted): (&Resolved<'_>, &Sifted)| {
        let durable = sifted.takers.iter().filter_map(|id| Some(find((ids, queues), *id)?.durability()));
        let keepers = Keepers::among(durable.filter(|_| publish.message.view().head.is_persistent));
        let record = publish.record(&keepers.queues, now);
        // Of a message that all had before, what they said then is what counts.
        let is_new = !sifted.takers.is_empty() || sifted.had_by == 0;
        Kept { record, level: is_new.then_some(keepers.level), keepers }
    };
    publishes.iter().zip(sifted).map(&mut keep_one).collect()
}

/// Gives a message of a transaction to whoever hears it now.
fn publish_live<W: World>(world: &W, actor: &Actor<'_>, publish: &Resolved<'_>, report: &mut PublishReport) {
    world.count(Event::Published);
    let publication = Publication::of_stored(publish.message);
    let Some(route) = &publish.route else {
        report.receivers += reply(world, publish.subject, &publication).receivers;
        return;
    };
    let address = &AddressView::new(&route.address);
    let (vhost, run, first) = (actor.vhost, slice::from_ref(&publication), Lsn::NONE);
    let letter = Letter { vhost, address, run, deaths: None, first, echo_to: None };
    let mut shared = SharedHeaders::for_receivers(live_receivers(route));
    distribute_live(world, route, &letter, &mut shared, report);
    if route.is_empty() {
        world.count(Event::Unroutable);
    }
}

/// What a transaction has done to its queues, and what follows from it.
#[derive(Default)]
struct Applied {
    report: PublishReport,
    effects: Effects,
    wakes: Vec<Wake>,
    /// Dead letters that move by the records of the transaction, and the numbers of these.
    moved: Vec<Move>,
    lsns_of_moved: Vec<Lsn>,
    /// The highest of those durable queues in which it settles something.
    settle_level: Option<Level>,
}

impl Applied {
    /// Settles all that is to be settled; what dies of it moves as was found before.
    fn settle<W: World>(
        &mut self,
        world: &W,
        actor: &Actor<'_>,
        (ids, queues): Locked<'_, '_>,
        steps: &[Step],
        moves: &mut BTreeMap<Place, Move>,
        now: Time,
    ) {
        for step in steps {
            let Step::Settle { session, numbers, outcome } = step else { continue };
            let (settled, woken) = world
                .with_outbound(actor.connection, |outbound| outbound.settle(*session, *numbers))
                .unwrap_or_default();
            self.wakes.extend(woken);
            for unsettled in settled {
                let Some(queue) = find((ids, queues), unsettled.place.queue) else { continue };
                let died = self.effects.dead.len();
                queue.settle(unsettled.place.sequence, *outcome, now, &mut self.effects);
                // What dies moves by the records of the transaction.
                if self.effects.dead.len() > died
                    && let Some(prepared) = moves.remove(&unsettled.place)
                {
                    self.effects.dead.pop();
                    self.moved.push(prepared);
                }
                self.settle_level = self.settle_level.max(queue.durability().map(|kept| kept.level));
            }
        }
    }

    /// Records all of it as one; gives the numbers of the messages.
    fn record<W: World>(&mut self, world: &W, messages: &mut [Kept], sifted: &[Sifted]) -> Vec<Lsn> {
        let mut settled = std::mem::take(&mut self.effects.settled);
        settled.extend(self.moved.iter().filter_map(Move::holding));
        let mut done = settle_records(&settled);
        // What dies and lingers is settled too.
        done.extend(count_records(&std::mem::take(&mut self.effects.lingering)));
        let (mut lsns, confirm) = record_all(world, messages, &mut self.moved, done, self.settle_level);
        self.lsns_of_moved = lsns.split_off(messages.len());
        let is_any_new = messages.iter().any(|kept| kept.level.is_some());
        let had = sifted.iter().filter_map(|sifted| sifted.confirm).reduce(Confirm::and);
        self.report.confirm = match had {
            Some(had) if is_any_new => confirm.and(had),
            // What it settles waits too, and has no level of its own.
            Some(had) => had.after(confirm),
            None => confirm,
        };
        lsns
    }

    /// Puts a message into the queues that take it.
    fn enqueue(
        &mut self,
        (ids, queues): Locked<'_, '_>,
        publish: &Resolved<'_>,
        sifted: &Sifted,
        (kept, lsn): (&Kept, Lsn),
        now: Time,
    ) {
        let Some(route) = &publish.route else { return };
        let arrival = Arrival { address: &AddressView::new(&route.address), deaths: None, lsn, now };
        self.report.receivers += sifted.had_by;
        for id in &sifted.takers {
            if let Some(queue) = find((ids, queues), *id) {
                queue.enqueue(&Publication::of_stored(publish.message), &arrival, &mut self.effects);
                note(queue, publish.id(), now, kept.keepers.lsn_in(queue, lsn));
                self.report.receivers += 1;
            }
        }
    }
}

/// A message of a transaction, and who keeps it.
struct Kept {
    /// None where nobody does.
    record: Option<NewRecord>,
    keepers: Keepers,
    /// How safe it is in them, if it is in any.
    level: Option<Level>,
}

/// Tells of each message which queues take it. Of those with one id in one transaction the first counts.
fn sift_all<'a>(
    ids: &[QueueId],
    queues: &mut [Option<&mut Queue>],
    resolved: &[Resolved<'a>],
    now: Time,
) -> Vec<Sifted> {
    let mut noted = BTreeSet::new();
    let mut sift_one = |publish: &Resolved<'a>| {
        let Some(route) = &publish.route else { return Sifted::default() };
        let mut sifted = sift((ids, queues), &route.queues, publish.id(), now);
        let takers = sifted.takers.len();
        if let Some(message) = publish.id() {
            sifted.takers.retain(|id| {
                let is_for_once = find((ids, queues), *id).is_some_and(|queue| queue.dedup().is_some());
                !is_for_once || noted.insert((*id, message))
            });
        }
        sifted.had_by += takers - sifted.takers.len();
        sifted
    };
    resolved.iter().map(&mut sift_one).collect()
}

/// Finds where those go that die by being settled so.
fn moves<W: World>(
    world: &W,
    actor: &Actor<'_>,
    settled: &[(Place, Outcome)],
    now: Time,
) -> BTreeMap<Place, Move> {
    let mut moves = BTreeMap::new();
    for (place, outcome) in settled.iter().filter(|(_, outcome)| *outcome != Outcome::Accept) {
        let death = world.with_queue(place.queue, |queue| queue.death(place.sequence, *outcome, now));
        let moved = death.flatten().map(|dead| Move::of(world, actor.vhost, dead));
        moves.extend(moved.map(|moved| (*place, moved)));
    }
    moves
}

/// Records all that a transaction does, as one; gives the numbers of its messages, then of its dead letters, and what
/// its confirm waits for.
fn record_all<W: World>(
    world: &W,
    messages: &mut [Kept],
    moved: &mut [Move],
    done: Vec<NewRecord>,
    settles: Option<Level>,
) -> (Vec<Lsn>, Confirm) {
    let mut records = Vec::new();
    let mut level: Option<Level> = None;
    let mut wait = settles.unwrap_or_default();
    let mut places = Vec::new();
    for message in messages {
        level = [level, message.level].into_iter().flatten().min();
        places.push(message.record.take().map(|record| {
            wait = wait.max(message.keepers.wait);
            records.push(record);
            records.len() - 1
        }));
    }
    for moved in moved {
        places.push(moved.record.take().map(|record| {
            records.push(record);
            records.len() - 1
        }));
    }
    records.extend(done);
    if records.is_empty() {
        return (places.iter().map(|_| Lsn::NONE).collect(), Confirm::NOW);
    }
    let appended = world.append_group(records);
    let lsns = places.into_iter().map(|place| place.map_or(Lsn::NONE, |index| appended.first.plus(index)));
    let confirm = Confirm::of(wait, appended.through);
    (lsns.collect(), Confirm { level: level.or(settles).unwrap_or_default(), ..confirm })
}
