//! Moves a message that waits from one queue to others, for an operator.
//!
//! The message comes to its new queues and leaves the old one under the locks of all of them, and by one group of
//! records: after any crash it is in the old queue or in the new ones. Nothing is pushed out where it goes: a queue that
//! is at its limit refuses it, whatever its policy, and it stays where it is.

use std::slice;
use std::sync::Arc;

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level, Lsn};
use crate::definitions::find_queue;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::{Address, AddressView, Deaths, Message, Publication, meant_address};
use crate::name::Name;
use crate::outbound::SharedHeaders;
use crate::pipeline::{
    Batch, LockedQueues, PublishReport, Reports, authorize_publish, group_bytes, is_inbox, live_receivers,
    message_record, record_counts, record_effects, resolve_own, send_live,
};
use crate::queue::{Arrival, Effects};
use crate::record::{settle_records, settles_bytes_max};
use crate::room::Room;
use crate::route::{DurabilityPlan, Route};
use crate::world::World;

/// A message that waits, by which [`relocate`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// Its priority in the queue.
    pub priority: u8,
    /// Its number in the queue.
    pub sequence: u64,
}

/// Moves a message that waits in the queue `from`, in memory, to where `to` leads; gives the confirm after which no
/// crash undoes that. `None` where the message does not wait there any more, or stands on disk alone.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Locked`] or [`BrokerError::NoQueue`] for the queue, as of one who reads it;
/// [`BrokerError::Refused`] or [`BrokerError::Route`] for the address, as of one who publishes to it.
/// [`BrokerError::Nowhere`], [`BrokerError::ToItself`], [`BrokerError::QueueFull`], [`BrokerError::DiskFull`] or
/// [`BrokerError::RecordTooLarge`] where it would be lost. The message then stays where it is.
pub fn relocate<W: World>(
    world: &W,
    actor: &Actor<'_>,
    from: &[u8],
    waiting: Waiting,
    to: &Address,
) -> Result<Option<Confirm>, BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(from))?;
    let source = find_queue(world, actor, from)?;
    let (exchange, subject) = meant_address(to.exchange.as_bytes(), to.subject.as_bytes());
    if is_inbox(exchange, subject) {
        return Err(BrokerError::Nowhere(Name::new(subject)));
    }
    authorize_publish(world, actor, exchange, subject)?;
    let found = world.with_queue(source, |queue| {
        let entry = queue.waiting(waiting.priority, waiting.sequence)?;
        Some((Arc::clone(&entry.message), entry.envelope.deaths.clone()))
    });
    let Some((message, deaths)) = found.flatten() else { return Ok(None) };
    let route = resolve_own(world, actor.vhost, exchange, subject, &message.view())?;
    if route.queues.is_empty() {
        return Err(BrokerError::Nowhere(Name::new(subject)));
    }
    if route.queues.contains(&source) {
        return Err(BrokerError::ToItself(Name::new(from)));
    }
    let relocation =
        Relocation { source, waiting, message: &message, deaths: deaths.as_ref(), route: &route };
    let Some((lsn, effects)) = relocation.apply(world)? else { return Ok(None) };
    relocation.tell(world, actor, lsn, effects);
    Ok(Some(Confirm::of(Level::Disk, world.appended())))
}

/// A message on its way from one queue to others.
struct Relocation<'a> {
    source: QueueId,
    waiting: Waiting,
    message: &'a Arc<Message>,
    deaths: Option<&'a Arc<Deaths>>,
    route: &'a Route,
}

impl Relocation<'_> {
    /// Moves it under the locks of all queues; gives the number of its record. `None` where it is gone meanwhile.
    fn apply<W: World>(&self, world: &W) -> Result<Option<(Lsn, Effects)>, BrokerError> {
        let now = world.now();
        let mut ids = self.route.queues.clone();
        ids.push(self.source);
        ids.sort_unstable();
        ids.dedup();
        let publication = Publication::of_stored(self.message);
        let address = AddressView::new(&self.route.address);
        let bytes = publication.view().body.len() as u64;
        let is_persistent = publication.view().properties.is_persistent;
        if is_persistent && world.room().is_alarmed() {
            return Err(BrokerError::DiskFull(self.route.address.subject.clone()));
        }
        let mut effects = Effects::default();
        world
            .with_queues(&ids, |queues| {
                let mut queues = LockedQueues::new(&ids, queues);
                let Waiting { priority, sequence } = self.waiting;
                if queues.find(self.source).and_then(|queue| queue.waiting(priority, sequence)).is_none() {
                    return Ok(None);
                }
                let (mut kept, mut takers) = (Vec::new(), 0);
                for id in &self.route.queues {
                    let Some(queue) = queues.find(*id) else { continue };
                    if queue.is_over_with(1, bytes) {
                        return Err(BrokerError::QueueFull(queue.name().clone()));
                    }
                    takers += 1;
                    kept.push(queue.durability().map(|durability| (durability.id, durability.level)));
                }
                if takers == 0 {
                    return Err(BrokerError::Nowhere(self.route.address.subject.clone()));
                }
                let plan = DurabilityPlan::among(kept.into_iter().filter(|_| is_persistent));
                let deaths = self.deaths.map(|deaths| &**deaths);
                let mut records = Vec::new();
                if !plan.queues.is_empty() {
                    records.push(message_record(&publication, &address, deaths, &plan.queues, now));
                }
                let has_record = !records.is_empty();
                let (bytes, bytes_max) =
                    (group_bytes(&records) + settles_bytes_max(1), world.group_bytes_max());
                if bytes > bytes_max {
                    let queues = plan.queues.len();
                    return Err(BrokerError::RecordTooLarge { bytes, bytes_max, queues });
                }
                let Some(source) = queues.find(self.source) else { return Ok(None) };
                let Some(record_ref) = source.take_waiting(priority, sequence) else { return Ok(None) };
                records.extend(settle_records(record_ref.as_slice()));
                let lsn = match records.is_empty() {
                    true => Lsn::NONE,
                    false => world.append_group(records).first,
                };
                for id in &self.route.queues {
                    let Some(queue) = queues.find(*id) else { continue };
                    let is_kept =
                        queue.durability().is_some_and(|durability| plan.queues.contains(&durability.id));
                    let lsn = if has_record && is_kept { lsn } else { Lsn::NONE };
                    let arrival = Arrival { address: &address, deaths: self.deaths, lsn, now };
                    queue.enqueue(&publication, &arrival, &mut effects);
                }
                record_counts(world, &mut effects);
                Ok(Some(lsn))
            })
            .map(|lsn: Option<Lsn>| lsn.map(|lsn| (lsn, effects)))
    }

    /// Tells readers of the message, whose queues are unlocked.
    fn tell<W: World>(&self, world: &W, actor: &Actor<'_>, lsn: Lsn, mut effects: Effects) {
        let publication = Publication::of_stored(self.message);
        let address = AddressView::new(&self.route.address);
        let batch = Batch {
            deaths: self.deaths,
            first: lsn,
            ..Batch::new(actor.vhost, &address, slice::from_ref(&publication))
        };
        let mut shared = SharedHeaders::for_receivers(live_receivers(self.route));
        let mut report = PublishReport::default();
        send_live(world, self.route, &batch, &mut shared, &mut Reports::Sum(&mut report));
        for id in self.route.queues.iter().chain([&self.source]) {
            change_and_deliver(world, *id, |_, _| ());
        }
        // Nothing is pushed out, so that nothing dies of it.
        record_effects(world, &mut effects, &mut Vec::new());
    }
}
