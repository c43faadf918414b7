//! Moves a ready message from one queue to others, on an operator's behalf.
//!
//! The message enters its new queues and leaves the old one under the locks of all of them and in
//! one record group, so that after a crash it is in the old queue or in the new ones. It displaces
//! no other message: a queue at its limit refuses it, whatever its overflow policy, and it stays.

use std::slice;
use std::sync::Arc;

use super::deliver::change_and_deliver;
use crate::authorize::{Action, Actor, Object};
use crate::confirm::{Confirm, Level, Lsn};
use crate::definitions::find_plain_queue;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::{Address, AddressView, Deaths, Message, Publication, meant_address};
use crate::name::Name;
use crate::outbound::SharedHeaders;
use crate::pipeline::{
    Batch, LockedQueues, Proposal, PublishReport, Reports, admit, authorize_publish, is_inbox,
    live_receivers, message_record, record_counts, record_effects, resolve_own, send_live,
};
use crate::queue::{Arrival, Effects};
use crate::record::{settle_records, settles_bytes_max};
use crate::room::Purpose;
use crate::route::{DurabilityPlan, Route};
use crate::world::World;

/// Identifies a ready message for [`relocate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// The priority within its queue.
    pub priority: u8,
    /// The sequence number within its queue.
    pub sequence: u64,
}

/// Moves a ready message of the queue `from`, which must be in memory, to the targets of `to`;
/// returns the confirm after which the move survives a crash. `None` if the message is no longer
/// ready, or is only on disk.
///
/// # Errors
/// For the queue, the errors of a consumer: [`BrokerError::Refused`], [`BrokerError::Locked`] or
/// [`BrokerError::NoQueue`]. For the address, those of a publisher: [`BrokerError::Refused`] or
/// [`BrokerError::Route`]. [`BrokerError::Nowhere`], [`BrokerError::ToItself`],
/// [`BrokerError::QueueFull`], [`BrokerError::Unavailable`] or [`BrokerError::RecordTooLarge`] if the
/// message would be lost. It then stays where it is.
pub fn relocate<W: World>(
    world: &W,
    actor: &Actor<'_>,
    from: &[u8],
    waiting: Waiting,
    to: &Address,
) -> Result<Option<Confirm>, BrokerError> {
    world.authorize(actor, Action::Consume, Object::Queue(from))?;
    let source = find_plain_queue(world, actor, from)?;
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
    Ok(Some(world.confirm_own(Level::Disk)))
}

/// A message that moves from one queue to others.
struct Relocation<'a> {
    source: QueueId,
    waiting: Waiting,
    message: &'a Arc<Message>,
    deaths: Option<&'a Arc<Deaths>>,
    route: &'a Route,
}

impl Relocation<'_> {
    /// Moves the message under the locks of all queues; returns the number of its record. `None` if
    /// the message has left its queue meanwhile.
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
        if is_persistent {
            admit(world, Purpose::Store, self.route.address.subject.as_bytes())?;
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
                    if queue.is_stream() {
                        return Err(BrokerError::IsStream(queue.name().clone()));
                    }
                    takers += 1;
                    kept.push(queue.durability().map(|durability| (durability.id, durability.level)));
                }
                if takers == 0 {
                    return Err(BrokerError::Nowhere(self.route.address.subject.clone()));
                }
                let plan = DurabilityPlan::among(kept.into_iter().filter(|_| is_persistent));
                let deaths = self.deaths.map(|deaths| &**deaths);
                let is_kept = !plan.queues.is_empty();
                let record =
                    is_kept.then(|| message_record(&publication, &address, deaths, &plan.queues, now));
                let mut proposal = Proposal::default();
                let place = proposal.add(record);
                let (bytes, bytes_max) = (proposal.bytes() + settles_bytes_max(1), world.group_bytes_max());
                if bytes > bytes_max {
                    let queues = plan.queues.len();
                    return Err(BrokerError::RecordTooLarge { bytes, bytes_max, queues });
                }
                let Some(source) = queues.find(self.source) else { return Ok(None) };
                let Some(record_ref) = source.take_waiting(priority, sequence) else { return Ok(None) };
                proposal.extend(settle_records(record_ref.as_slice()));
                let lsn = proposal.record_together(world).at(place);
                for id in &self.route.queues {
                    let Some(queue) = queues.find(*id) else { continue };
                    let is_kept =
                        queue.durability().is_some_and(|durability| plan.queues.contains(&durability.id));
                    let lsn = if is_kept { lsn } else { Lsn::NONE };
                    let arrival = Arrival { address: &address, deaths: self.deaths, lsn, now };
                    queue.enqueue(&publication, &arrival, &mut effects);
                }
                record_counts(world, &mut effects);
                Ok(Some(lsn))
            })
            .map(|lsn: Option<Lsn>| lsn.map(|lsn| (lsn, effects)))
    }

    /// Delivers the message to live receivers and consumers, after the queues are unlocked.
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
        send_live(world, self.route, batch, &mut shared, &mut Reports::Sum(&mut report));
        for id in self.route.queues.iter().chain([&self.source]) {
            change_and_deliver(world, *id, |_, _| ());
        }
        // Nothing is displaced, so there are no dead letters.
        record_effects(world, &mut effects, &mut Vec::new());
    }
}
