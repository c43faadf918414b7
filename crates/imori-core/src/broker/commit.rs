//! Several steps become one: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use super::actor::Actor;
use super::deliver::{change_and_deliver, wake_consumers};
use super::distribute::{
    Move, PublishReport, bury, check_kept, distribute_live, live_receivers, reply, resolve,
};
use super::letter::Letter;
use super::once::{Sifted, find, note, sift};
use super::record::{Keepers, group_bytes, message_record, record_counts, record_effects};
use crate::authorize::{Action, Object, authorize};
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::{Holding, Outcome, Place};
use crate::error::BrokerError;
use crate::id::{DurableQueueId, QueueId};
use crate::message::{Address, AddressView, Message, Property, Publication};
use crate::outbound::{INBOX_PREFIX, Numbers, SessionId, SharedHeaders};
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{NewRecord, settle_records, settles_bytes_max};
use crate::route::Route;
use crate::time::Time;
use crate::world::{Event, World};

/// A step of a transaction.
#[derive(Debug, Clone)]
pub enum Step {
    /// Publish a message.
    Publish {
        /// Where to.
        address: Address,
        /// The message.
        message: Arc<Message>,
    },
    /// Settle deliveries.
    Settle {
        /// In this session.
        session: SessionId,
        /// These.
        numbers: Numbers,
        /// In this way.
        outcome: Outcome,
    },
}

/// A publish that found its receivers.
struct Resolved<'a> {
    message: &'a Arc<Message>,
    subject: &'a [u8],
    /// `None` for an inbox.
    route: Option<Arc<Route>>,
}

/// Deliveries that are to be settled, and how.
type Settles = Vec<(Place, Outcome)>;

/// Commits a transaction (ARCHITECTURE, transactions): checks everything, then applies all of it to the
/// queues, locked together, then delivers. Readers may see one queue's part before another's.
///
/// # Errors
/// What the first step that is not possible would have met; then nothing was done.
pub fn commit<W: World>(world: &W, actor: &Actor<'_>, steps: &[Step]) -> Result<PublishReport, BrokerError> {
    let now = world.now();
    let (resolved, settled) = check(world, actor, steps)?;
    let mut moves = moves(world, actor, &settled, now);
    let mut settles: Option<Level> = None;
    let mut ids: Vec<QueueId> = resolved
        .iter()
        .flat_map(|publish| publish.route.iter())
        .flat_map(|route| route.queues.iter().copied())
        .collect();
    ids.extend(settled.iter().map(|(place, _)| place.queue));
    ids.sort_unstable();
    ids.dedup();

    let mut report = PublishReport::default();
    let mut effects = Effects::default();
    let (mut wakes, mut moved, mut lsns_of_moves) = (Vec::new(), Vec::new(), Vec::new());
    world.with_queues(&ids, |queues| {
        let sifted = sift_all(&ids, queues, &resolved, now);
        let mut arriving = BTreeMap::<QueueId, (u64, u64)>::new();
        for (publish, sifted) in resolved.iter().zip(&sifted) {
            for id in &sifted.takers {
                let total = arriving.entry(*id).or_default();
                total.0 += 1;
                total.1 += publish.message.view().body.len() as u64;
            }
        }
        for (id, (messages, bytes)) in arriving {
            if let Some(queue) = find((&ids, queues), id)
                && queue.refuses(messages, bytes)
            {
                return Err(BrokerError::QueueFull(queue.name().clone()));
            }
        }
        let mut messages = Vec::new();
        for (publish, sifted) in resolved.iter().zip(&sifted) {
            let durable = sifted.takers.iter().filter_map(|id| Some(find((&ids, queues), *id)?.durability()));
            let keepers = Keepers::among(durable.filter(|_| publish.message.view().head.is_persistent));
            let record = publish.record(&keepers.queues, now);
            // Of a message that all had before, what they said then is what counts.
            let is_new = !sifted.takers.is_empty() || sifted.had_by == 0;
            messages.push(Kept { record, level: is_new.then_some(keepers.level), keepers });
        }
        let records = messages.iter().filter_map(|kept| kept.record.as_ref());
        let records = records.chain(moves.values().filter_map(|moved| moved.record.as_ref()));
        let mut is_kept = |place: &Place| {
            find((&ids, queues), place.queue).is_some_and(|queue| queue.durability().is_some())
        };
        let settles_kept = settled.iter().filter(|(place, _)| is_kept(place)).count();
        let bytes = group_bytes(records) + settles_bytes_max(settles_kept);
        let bytes_max = world.group_bytes_max();
        if bytes > bytes_max {
            return Err(BrokerError::TransactionTooLarge { bytes, bytes_max });
        }
        // Nothing can be refused from here on.
        for step in steps {
            if let Step::Settle { session, numbers, outcome } = step {
                let (settled, woken) = world
                    .with_outbound(actor.connection, |outbound| outbound.settle(*session, *numbers))
                    .unwrap_or_default();
                wakes.extend(woken);
                for unsettled in settled {
                    if let Some(queue) = find((&ids, queues), unsettled.place.queue) {
                        let died = effects.dead.len();
                        queue.settle(unsettled.place.sequence, *outcome, now, &mut effects);
                        // What dies moves by the records of the transaction.
                        if effects.dead.len() > died
                            && let Some(prepared) = moves.remove(&unsettled.place)
                        {
                            effects.dead.pop();
                            moved.push(prepared);
                        }
                        settles = settles.max(queue.durability().map(|durability| durability.level));
                    }
                }
            }
        }
        let mut settled = std::mem::take(&mut effects.settled);
        settled.extend(moved.iter().filter_map(Move::holding));
        let (lsns, confirm) = record_all(world, &mut messages, &mut moved, &settled, settles);
        let (lsns, of_moves) = lsns.split_at(messages.len());
        lsns_of_moves.extend_from_slice(of_moves);
        let is_any_new = messages.iter().any(|kept| kept.level.is_some());
        let had = sifted.iter().filter_map(|sifted| sifted.confirm).reduce(Confirm::and);
        report.confirm = match had {
            Some(had) if is_any_new => confirm.and(had),
            // What it settles waits too, and has no level of its own.
            Some(had) => had.after(confirm),
            None => confirm,
        };
        for (((publish, sifted), kept), lsn) in
            resolved.iter().zip(&sifted).zip(&messages).zip(lsns.iter().copied())
        {
            let Some(route) = &publish.route else { continue };
            let arrival = Arrival { address: &AddressView::new(&route.address), deaths: None, lsn, now };
            report.receivers += sifted.had_by;
            for id in &sifted.takers {
                if let Some(queue) = find((&ids, queues), *id) {
                    queue.enqueue(&Publication::of_stored(publish.message), &arrival, &mut effects);
                    note(queue, publish.id(), now, kept.keepers.lsn_in(queue, lsn));
                    report.receivers += 1;
                }
            }
        }
        record_counts(world, &mut effects);
        Ok(())
    })?;

    for publish in &resolved {
        world.count(Event::Published);
        let publication = Publication::of_stored(publish.message);
        match &publish.route {
            Some(route) => {
                let run = slice::from_ref(&publication);
                let address = &AddressView::new(&route.address);
                let (vhost, first) = (actor.vhost, Lsn::NONE);
                let letter = Letter { vhost, address, run, deaths: None, first, echo_to: None };
                let mut shared = SharedHeaders::for_receivers(live_receivers(route));
                distribute_live(world, route, &letter, &mut shared, &mut report);
                if route.is_empty() {
                    world.count(Event::Unroutable);
                }
            }
            None => report.receivers += reply(world, publish.subject, &publication).receivers,
        }
    }
    for id in ids {
        change_and_deliver(world, id, |_, _| ());
    }
    wake_consumers(world, actor.connection, &wakes);
    let mut dead = record_effects(world, effects);
    for (moved, lsn) in moved.iter().zip(lsns_of_moves) {
        moved.send(world, actor.vhost, lsn, &mut |more| dead.extend(more));
    }
    bury(world, actor.vhost, dead);
    if let Some(level) = settles {
        // What it caused has moved by records of its own, which are among those up to now.
        report.confirm = report.confirm.after(Confirm::of(level, world.appended()));
    }
    Ok(report)
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
    settled: &[Holding],
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
    records.extend(settle_records(settled));
    if records.is_empty() {
        return (places.iter().map(|_| Lsn::NONE).collect(), Confirm::NOW);
    }
    let appended = world.append_group(records);
    let lsns = places.into_iter().map(|place| place.map_or(Lsn::NONE, |index| appended.first.plus(index)));
    let confirm = Confirm::of(wait, appended.through);
    (lsns.collect(), Confirm { level: level.or(settles).unwrap_or_default(), ..confirm })
}

impl<'a> Resolved<'a> {
    /// What the publisher calls it.
    fn id(&self) -> Option<&'a [u8]> {
        self.message.view().property(Property::MessageId)
    }

    /// The record of the message, if these queues keep it.
    fn record(&self, queues: &[DurableQueueId], now: Time) -> Option<NewRecord> {
        let route = self.route.as_ref().filter(|_| !queues.is_empty())?;
        let publication = Publication::of_stored(self.message);
        Some(message_record(&publication, &AddressView::new(&route.address), None, queues, now))
    }
}

/// Looks at every step: rights, exchanges, deliveries. Gives the publishes with their receivers, and the
/// deliveries that are to be settled, and how.
fn check<'a, W: World>(
    world: &W,
    actor: &Actor<'_>,
    steps: &'a [Step],
) -> Result<(Vec<Resolved<'a>>, Settles), BrokerError> {
    let (mut resolved, mut settles) = (Vec::new(), Settles::new());
    // What an earlier step settles is not there for a later one.
    let mut settled = BTreeSet::<(SessionId, u64)>::new();
    for step in steps {
        match step {
            Step::Publish { address, message } => {
                let (exchange, subject) = (address.exchange.as_bytes(), address.subject.as_bytes());
                let route = if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
                    authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
                    check_kept(message.view().head, &[], subject)?;
                    None
                } else {
                    let object = Object::Exchange { exchange, subject };
                    authorize(actor.identity, Action::Publish, actor.vhost, object)?;
                    let route = resolve(world, actor.vhost, exchange, subject, &message.view())?;
                    check_kept(message.view().head, &route.queues, subject)?;
                    Some(route)
                };
                resolved.push(Resolved { message, subject, route });
            }
            Step::Settle { session, numbers, outcome } => {
                authorize(actor.identity, Action::Settle, actor.vhost, Object::Vhost)?;
                let number = numbers.last();
                let (is_known, meant) = world
                    .with_outbound(actor.connection, |outbound| {
                        let is_known = outbound.find_unsettled(*session, number).is_some();
                        (is_known, outbound.meant(*session, *numbers))
                    })
                    .unwrap_or_default();
                if !is_known || settled.contains(&(*session, number)) {
                    return Err(BrokerError::NoDelivery(number));
                }
                let new = meant.iter().filter(|unsettled| settled.insert((*session, unsettled.number)));
                settles.extend(new.map(|unsettled| (unsettled.place, *outcome)));
            }
        }
    }
    Ok((resolved, settles))
}
