//! Several steps become one: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use super::actor::Actor;
use super::deliver::{change_and_deliver, wake_consumers};
use super::distribute::{PublishReport, bury, distribute_live, live_receivers, reply, resolve};
use super::letter::Letter;
use super::record::{Keepers, message_record, record_effects};
use crate::authorize::{Action, Object, authorize};
use crate::confirm::{Confirm, Level, Lsn};
use crate::delivery::{Holding, Outcome};
use crate::error::BrokerError;
use crate::id::{DurableQueueId, QueueId};
use crate::message::{Address, AddressView, Message, Publication};
use crate::outbound::{INBOX_PREFIX, Numbers, SessionId, SharedHeaders};
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{NewRecord, RecordKind, encode_settle};
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

/// Commits a transaction (ARCHITECTURE, transactions): checks everything, then applies all of it to the
/// queues, locked together, then delivers. Readers may see one queue's part before another's.
///
/// # Errors
/// What the first step that is not possible would have met; then nothing was done.
pub fn commit<W: World>(world: &W, actor: &Actor<'_>, steps: &[Step]) -> Result<PublishReport, BrokerError> {
    let (resolved, queues_of_settles) = check(world, actor, steps)?;
    let mut settles: Option<Level> = None;
    let mut ids: Vec<QueueId> = resolved
        .iter()
        .flat_map(|publish| publish.route.iter())
        .flat_map(|route| route.queues.iter().copied())
        .collect();
    ids.extend(queues_of_settles);
    ids.sort_unstable();
    ids.dedup();

    let now = world.now();
    let mut report = PublishReport::default();
    let mut effects = Effects::default();
    let mut wakes = Vec::new();
    world.with_queues(&ids, |queues| {
        let mut arriving = BTreeMap::<usize, (u64, u64)>::new();
        for publish in &resolved {
            for id in publish.route.iter().flat_map(|route| &route.queues) {
                let Ok(index) = ids.binary_search(id) else { continue };
                let total = arriving.entry(index).or_default();
                total.0 += 1;
                total.1 += publish.message.view().body.len() as u64;
            }
        }
        for (index, (messages, bytes)) in arriving {
            if let Some(Some(queue)) = queues.get(index)
                && queue.refuses(messages, bytes)
            {
                return Err(BrokerError::QueueFull(queue.name().clone()));
            }
        }
        let find = |id| ids.binary_search(&id).ok();
        let mut messages = Vec::new();
        for publish in &resolved {
            let of_route = publish.route.iter().flat_map(|route| &route.queues);
            let of_route = of_route.filter_map(|id| queues.get(find(*id)?)?.as_deref());
            let durable =
                of_route.map(Queue::durability).filter(|_| publish.message.view().head.is_persistent);
            let keepers = Keepers::among(durable);
            messages.push(publish.record(&keepers.queues, now).map(|record| (record, keepers)));
        }
        let bytes = messages.iter().flatten().map(|(record, _)| record.payload.len() + 64).sum::<usize>();
        let bytes_max = world.group_bytes_max() / 2;
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
                    if let Some(Some(queue)) = find(unsettled.place.queue).and_then(|at| queues.get_mut(at)) {
                        queue.settle(unsettled.place.sequence, *outcome, now, &mut effects);
                        settles = settles.max(queue.durability().map(|durability| durability.level));
                    }
                }
            }
        }
        let (lsns, confirm) = record_all(world, messages, &std::mem::take(&mut effects.settled), settles);
        report.confirm = confirm;
        for (publish, lsn) in resolved.iter().zip(lsns) {
            let Some(route) = &publish.route else { continue };
            let arrival = Arrival { address: &AddressView::new(&route.address), deaths: None, lsn, now };
            for id in &route.queues {
                if let Some(Some(queue)) = find(*id).and_then(|at| queues.get_mut(at)) {
                    queue.enqueue(&Publication::of_stored(publish.message), &arrival, &mut effects);
                    report.receivers += 1;
                }
            }
        }
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
    let dead = record_effects(world, effects);
    bury(world, actor.vhost, dead);
    Ok(report)
}

/// A persistent message of a transaction, and who keeps it.
type Kept = (NewRecord, Keepers);

/// Records all that a transaction does, as one; gives the numbers of its messages and what its confirm waits for.
fn record_all<W: World>(
    world: &W,
    messages: Vec<Option<Kept>>,
    settled: &[Holding],
    settles: Option<Level>,
) -> (Vec<Lsn>, Confirm) {
    let mut records = Vec::new();
    let mut level: Option<Level> = None;
    let mut wait = settles.unwrap_or_default();
    let mut places = Vec::new();
    for message in messages {
        let of_message = message.as_ref().map_or(Level::Memory, |(_, keepers)| keepers.level);
        level = Some(level.map_or(of_message, |level| level.min(of_message)));
        places.push(message.map(|(record, keepers)| {
            wait = wait.max(keepers.wait);
            records.push(record);
            records.len() - 1
        }));
    }
    if !settled.is_empty() {
        records.push(NewRecord::new(RecordKind::Settle, encode_settle(settled)));
    }
    if records.is_empty() {
        return (places.iter().map(|_| Lsn::NONE).collect(), Confirm::NOW);
    }
    let appended = world.append_group(records);
    let lsns = places.into_iter().map(|place| place.map_or(Lsn::NONE, |index| appended.first.plus(index)));
    let confirm = Confirm::of(wait, appended.through);
    (lsns.collect(), Confirm { level: level.or(settles).unwrap_or_default(), ..confirm })
}

impl Resolved<'_> {
    /// The record of the message, if these queues keep it.
    fn record(&self, queues: &[DurableQueueId], now: Time) -> Option<NewRecord> {
        let route = self.route.as_ref().filter(|_| !queues.is_empty())?;
        let publication = Publication::of_stored(self.message);
        Some(message_record(&publication, &AddressView::new(&route.address), None, queues, now))
    }
}

/// Looks at every step: rights, exchanges, deliveries. Gives the publishes with their receivers, and the
/// queues of the deliveries that are to be settled.
fn check<'a, W: World>(
    world: &W,
    actor: &Actor<'_>,
    steps: &'a [Step],
) -> Result<(Vec<Resolved<'a>>, BTreeSet<QueueId>), BrokerError> {
    let (mut resolved, mut queues) = (Vec::new(), BTreeSet::new());
    // What an earlier step settles is not there for a later one.
    let mut settled = BTreeSet::<(SessionId, u64)>::new();
    for step in steps {
        match step {
            Step::Publish { address, message } => {
                let (exchange, subject) = (address.exchange.as_bytes(), address.subject.as_bytes());
                let route = if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
                    authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
                    None
                } else {
                    let object = Object::Exchange { exchange, subject };
                    authorize(actor.identity, Action::Publish, actor.vhost, object)?;
                    Some(resolve(world, actor.vhost, exchange, subject, &message.view())?)
                };
                resolved.push(Resolved { message, subject, route });
            }
            Step::Settle { session, numbers, .. } => {
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
                queues.extend(meant.iter().map(|unsettled| unsettled.place.queue));
                settled.extend(meant.iter().map(|unsettled| (*session, unsettled.number)));
            }
        }
    }
    Ok((resolved, queues))
}
