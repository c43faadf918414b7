//! Several steps become one: all of them, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::Arc;

use super::actor::Actor;
use super::deliver::{change_and_deliver, wake_consumers};
use super::distribute::{Letter, PublishReport, bury, distribute_live, live_receivers, reply, resolve};
use crate::authorize::{Action, Object, authorize};
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::{Address, AddressView, Message, Publication};
use crate::outbound::{INBOX_PREFIX, Numbers, SessionId, SharedHeaders};
use crate::queue::{Arrival, Dead};
use crate::route::Route;
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
    let mut settles = BTreeMap::<QueueId, Vec<(u64, Outcome)>>::new();
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
    let mut dead: Vec<Dead> = Vec::new();
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
        // Nothing can be refused from here on.
        for step in steps {
            if let Step::Settle { session, numbers, outcome } = step {
                let (settled, woken) = world
                    .with_outbound(actor.connection, |outbound| outbound.settle(*session, *numbers))
                    .unwrap_or_default();
                wakes.extend(woken);
                for unsettled in settled {
                    settles
                        .entry(unsettled.place.queue)
                        .or_default()
                        .push((unsettled.place.sequence, *outcome));
                }
            }
        }
        for publish in &resolved {
            let Some(route) = &publish.route else { continue };
            let arrival = Arrival { address: &AddressView::new(&route.address), deaths: None, now };
            for id in &route.queues {
                if let Ok(index) = ids.binary_search(id)
                    && let Some(Some(queue)) = queues.get_mut(index)
                {
                    queue.enqueue(&Publication::of_stored(publish.message), &arrival, &mut dead);
                    report.receivers += 1;
                }
            }
        }
        for (id, of_queue) in &settles {
            if let Ok(index) = ids.binary_search(id)
                && let Some(Some(queue)) = queues.get_mut(index)
            {
                for (sequence, outcome) in of_queue {
                    queue.settle(*sequence, *outcome, now, &mut dead);
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
                let letter = Letter { vhost: actor.vhost, address, run, deaths: None, echo_to: None };
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
    bury(world, actor.vhost, dead);
    Ok(report)
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
