//! Runs the steps of a publish in order, for one batch and one route.

use super::batch::Batch;
use super::dead_letter::publish_dead_letters;
use super::dedup::enqueue_locked;
use super::enqueue::{enqueue, enqueue_in};
use super::live::send_live;
use super::plan::{Plan, needs_plan};
use super::record::record;
use super::report::{PublishReport, Reports};
use crate::error::BrokerError;
use crate::id::VhostId;
use crate::outbound::SharedHeaders;
use crate::queue::DeadLetter;
use crate::route::Route;
use crate::time::Time;
use crate::world::{Counter, Observer, Quotas as _, Sent, World};

/// Publishes a batch to a route that its publisher may use. The batch is passed on by value, so that its parts stay in
/// registers on the usual way of a message.
///
/// # Errors
/// [`BrokerError::RecordTooLarge`], [`BrokerError::Unavailable`] or [`BrokerError::Quota`]; then no receiver has any of
/// it.
#[inline(always)]
pub(crate) fn send<W: World>(
    world: &W,
    route: &Route,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) -> Result<(), BrokerError> {
    let observed = world.observer().map(|observer| Observed::begin(observer, batch, reports));
    let mut dead = Vec::new();
    if !route.queues.is_empty() {
        send_to_queues(world, route, batch, shared, reports, &mut dead)?;
    }
    send_live(world, route, batch, shared, reports);
    if !dead.is_empty() {
        publish_dead_letters(world, batch.vhost, dead);
    }
    let unroutable = reports.unroutable(batch.messages.len());
    if unroutable > 0 {
        world.count_many(Counter::Unroutable, unroutable);
    }
    if let Some(observed) = observed {
        observed.end(batch, reports);
    }
    Ok(())
}

/// Publishes a batch of the broker's own to the queues of a route, and to no live reader.
pub(crate) fn send_to_stores<W: World>(world: &W, route: &Route, batch: Batch<'_>) {
    if route.queues.is_empty() {
        return;
    }
    let (mut dead, mut report) = (Vec::new(), PublishReport::default());
    let (mut shared, mut reports) = (SharedHeaders::for_receivers(1), Reports::Sum(&mut report));
    // Nobody could be told that a queue is full.
    let _ = send_planned(world, route, batch, &mut shared, &mut reports, &mut dead);
    if !dead.is_empty() {
        publish_dead_letters(world, batch.vhost, dead);
    }
}

/// Publishes a batch to the queues of a route. A transient message without an id needs no plan, unless it goes to a
/// stream.
#[inline(always)]
fn send_to_queues<W: World>(
    world: &W,
    route: &Route,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) -> Result<(), BrokerError> {
    if needs_plan(route, &batch) {
        return send_planned(world, route, batch, shared, reports, dead);
    }
    check_bytes(world, batch.vhost)?;
    match &*route.queues {
        [queue] => enqueue_in(world, *queue, batch, shared, reports, dead),
        queues => enqueue(world, queues, batch, shared, reports, dead),
    }
    Ok(())
}

#[inline(never)]
fn send_planned<W: World>(
    world: &W,
    route: &Route,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
    dead: &mut Vec<DeadLetter>,
) -> Result<(), BrokerError> {
    let plan = Plan::of(world, route, &batch);
    plan.check(world, &batch)?;
    check_bytes(world, batch.vhost)?;
    if plan.is_locked {
        enqueue_locked(world, route, &batch, reports, dead);
    } else {
        let first = record(world, &plan, &batch, reports);
        enqueue(world, &route.queues, Batch { first, ..batch }, shared, reports, dead);
    }
    Ok(())
}

/// Refuses messages for queues of a vhost that has reached its limit of bytes.
///
/// # Errors
/// [`BrokerError::Quota`].
#[inline]
pub(crate) fn check_bytes<W: World>(world: &W, vhost: VhostId) -> Result<(), BrokerError> {
    if world.gauge().full_vhosts() == 0 {
        return Ok(());
    }
    world.quotas().bytes_max_reached(vhost).map_or(Ok(()), |reached| {
        world.count(Counter::BytesRefused);
        Err(BrokerError::Quota(reached))
    })
}

/// A batch whose publish an observer follows.
struct Observed<'a> {
    observer: &'a dyn Observer,
    from: Time,
    /// Receivers before the batch was sent.
    before: usize,
}

impl<'a> Observed<'a> {
    #[cold]
    fn begin(observer: &'a dyn Observer, batch: Batch<'_>, reports: &Reports<'_>) -> Observed<'a> {
        let from = sent(batch).map_or(Time::default(), |sent| observer.publishing(&sent));
        Observed { observer, from, before: reports.receivers() }
    }

    #[cold]
    fn end(self, batch: Batch<'_>, reports: &Reports<'_>) {
        if let Some(sent) = sent(batch) {
            let receivers = reports.receivers().saturating_sub(self.before);
            self.observer.published(self.from, &sent, receivers);
        }
    }
}

fn sent<'a>(batch: Batch<'a>) -> Option<Sent<'a>> {
    let Batch { vhost, address, messages, .. } = batch;
    let (exchange, subject) = (address.exchange(), address.subject());
    Some(Sent { vhost, exchange, subject, first: messages.first()?.view(), messages: messages.len() })
}
