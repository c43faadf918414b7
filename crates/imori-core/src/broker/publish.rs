//! Publishes messages: directly to an inbox or the reader of a temporary queue, else through an
//! exchange to queues and live subscriptions.

use std::slice;
use std::sync::Arc;

use crate::authorize::Actor;
use crate::error::BrokerError;
use crate::id::VhostId;
use crate::message::{Address, AddressView, Publication, meant_address};
use crate::name::Name;
use crate::outbound::SharedHeaders;
use crate::pipeline::{
    Batch, PublishReport, Reports, Resolved, authorize_publish, authorize_reply, authorize_run, check_kept,
    is_inbox, live_receivers, pass, reply, resolve, resolve_all, resolve_own, send, send_to_own,
};
use crate::route::Route;
use crate::world::{Quotas as _, World};

/// Publishes a message to a subject of an exchange.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Route`], [`BrokerError::NotKept`],
/// [`BrokerError::RecordTooLarge`] or [`BrokerError::Quota`]; then no receiver has it. An
/// unroutable message is not an error.
pub fn publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    let (exchange, subject) = meant_address(exchange, subject);
    if is_inbox(exchange, subject) {
        authorize_reply(world, actor, subject, publication.view().properties)?;
        world.published(actor, 1, publication.view().bytes());
        let receivers = usize::from(reply(world, actor.vhost, subject, publication));
        return Ok(PublishReport { receivers, ..PublishReport::default() });
    }
    authorize_publish(world, actor, exchange, subject)?;
    if let Some(report) = publish_past_queue(world, actor, (exchange, subject), publication) {
        return Ok(report);
    }
    let found = resolve(world, actor.vhost, exchange, subject, publication.viewed())?;
    publish_to(world, actor, subject, &found, publication)
}

/// Publishes a message to a subject of an exchange and to the further subjects `copies`. Each
/// receiver gets it once, as published to `subject`. A reply goes to its inbox only.
///
/// # Errors
/// As [`publish`].
pub fn publish_with_copies<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    (subject, copies): (&[u8], &[Name]),
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    let (meant, key) = meant_address(exchange, subject);
    if copies.is_empty() || is_inbox(meant, key) {
        return publish(world, actor, exchange, subject, publication);
    }
    let route = resolve_all(world, actor, exchange, (subject, copies), &publication.view())?;
    let subject = key;
    publish_to(world, actor, subject, &Resolved::own(route), publication)
}

/// Publishes a message only if some queue would receive it; `None` tells the caller to declare the queue first.
///
/// # Errors
/// As [`publish`].
pub fn publish_to_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<Option<PublishReport>, BrokerError> {
    let (exchange, subject) = meant_address(exchange, subject);
    authorize_publish(world, actor, exchange, subject)?;
    if let Some(report) = publish_past_queue(world, actor, (exchange, subject), publication) {
        return Ok(Some(report));
    }
    let found = resolve(world, actor.vhost, exchange, subject, publication.viewed())?;
    if found.route.queues.is_empty() {
        return Ok(None);
    }
    publish_to(world, actor, subject, &found, publication).map(Some)
}

/// Delivers a message directly to the reader of a temporary queue; `None` if it must take the
/// normal way.
#[inline]
fn publish_past_queue<W: World>(
    world: &W,
    actor: &Actor<'_>,
    to: (&[u8], &[u8]),
    publication: &Publication<'_>,
) -> Option<PublishReport> {
    if !pass(world, actor.vhost, to, publication) {
        return None;
    }
    world.published(actor, 1, publication.view().bytes());
    Some(PublishReport { receivers: 1, ..PublishReport::default() })
}

#[inline]
fn publish_to<W: World>(
    world: &W,
    actor: &Actor<'_>,
    subject: &[u8],
    found: &Resolved,
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    check_kept(publication.view().properties, &found.route.queues, subject)?;
    let mut shared = SharedHeaders::for_receivers(live_receivers(&found.route));
    let address = found.address(subject);
    let batch = Batch::new(actor.vhost, &address, slice::from_ref(publication));
    let mut report = PublishReport::default();
    send(world, &found.route, batch, &mut shared, &mut Reports::Sum(&mut report))?;
    world.published(actor, 1, publication.view().bytes());
    Ok(report)
}

/// Sends a message of the broker's own to one subscription of the actor's connection that matches
/// the subject, and to no other receiver; false if there is none.
///
/// # Errors
/// [`BrokerError::Route`].
pub fn notify<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<bool, BrokerError> {
    let found = resolve(world, actor.vhost, exchange, subject, publication.viewed())?;
    let address = found.address(subject);
    let batch = Batch::new(actor.vhost, &address, slice::from_ref(publication));
    Ok(send_to_own(world, &found.route, &batch, actor.connection))
}

/// Results cached for a publisher that repeats itself.
#[derive(Debug, Default)]
pub struct Repetition {
    /// The table version for which the route is valid.
    version: Option<u64>,
    route: Option<Arc<Route>>,
    shared: SharedHeaders,
    /// Whether the publisher declares a queue if no queue would receive the message.
    makes_queue: bool,
}

impl Repetition {
    /// An empty cache. With `makes_queue`, [`publish_again`] publishes nothing that no queue would
    /// receive.
    pub fn new(makes_queue: bool) -> Repetition {
        Repetition { makes_queue, ..Repetition::default() }
    }

    /// Whether a queue of the last run throttles publishers, or a rate limit applies. Then the next
    /// message must go through [`publish`], before which the protocol asks whether to wait.
    #[inline]
    pub fn is_throttled<W: World>(&self, world: &W, actor: &Actor<'_>) -> bool {
        world.gauge().may_have_to_wait()
            && (world.gauge().rates() > 0 && world.quotas().has_rate(actor)
                || self.reaches_throttling_queue(world))
    }

    #[cold]
    fn reaches_throttling_queue<W: World>(&self, world: &W) -> bool {
        world.gauge().throttling() > 0
            && self.route.as_ref().is_some_and(|route| {
                route
                    .queues
                    .iter()
                    .any(|id| world.with_queue(*id, |queue| queue.is_throttling()) == Some(true))
            })
    }

    /// The number of live receivers of each message in the last run, if known.
    pub fn live_receivers(&self) -> Option<usize> {
        self.route.as_deref().map(live_receivers)
    }
}

/// Publishes a run of messages like the previous one; returns the sum of their results.
///
/// All must have the subject, exchange, headers and body length of that message, and be hidden from
/// the same connection, if any. Only then may `repetition` be reused. If a queue is gone, either
/// all or none of the messages miss it.
///
/// # Errors
/// As [`publish`]; then none of them was published.
#[inline]
pub fn publish_again<W: World>(
    world: &W,
    actor: &Actor<'_>,
    address: &Address,
    run: &[Publication<'_>],
    repetition: &mut Repetition,
) -> Result<PublishReport, BrokerError> {
    let mut report = PublishReport::default();
    publish_run(world, actor, address, run, repetition, &mut Reports::Sum(&mut report))?;
    Ok(report)
}

/// Publishes a run of messages as [`publish_again`] does; returns the result of each.
///
/// # Errors
/// As [`publish`]; then none of them was published.
pub fn publish_each<W: World>(
    world: &W,
    actor: &Actor<'_>,
    address: &Address,
    run: &[Publication<'_>],
    repetition: &mut Repetition,
) -> Result<Vec<PublishReport>, BrokerError> {
    let mut reports = vec![PublishReport::default(); run.len()];
    publish_run(world, actor, address, run, repetition, &mut Reports::Each(&mut reports))?;
    Ok(reports)
}

#[inline]
fn publish_run<W: World>(
    world: &W,
    actor: &Actor<'_>,
    address: &Address,
    run: &[Publication<'_>],
    repetition: &mut Repetition,
    reports: &mut Reports<'_>,
) -> Result<(), BrokerError> {
    let Some(first) = run.first() else { return Ok(()) };
    let (exchange, subject) = meant_address(address.exchange.as_bytes(), address.subject.as_bytes());
    let properties = first.view().properties;
    let version = world.with_router(|_, table| table.version());
    let route = match &repetition.route {
        Some(route) if repetition.version == Some(version) => route,
        _ => {
            repetition.route = None;
            if is_inbox(exchange, subject) {
                authorize_run(world, actor, exchange, subject)?;
                check_kept(properties, &[], subject)?;
                reply_each(world, actor.vhost, subject, run, reports);
                world.published(actor, run.len(), run.len() * first.view().bytes());
                return Ok(());
            }
            let route = resolve_own(world, actor.vhost, exchange, subject, &first.view())?;
            repetition.version = route.is_cacheable.then_some(version);
            repetition.shared = SharedHeaders::for_repetition(live_receivers(&route));
            repetition.route.insert(route)
        }
    };
    authorize_run(world, actor, exchange, subject)?;
    if repetition.makes_queue && route.queues.is_empty() {
        return Ok(());
    }
    check_kept(properties, &route.queues, subject)?;
    let address = AddressView::new(&route.address);
    let batch = Batch::new(actor.vhost, &address, run);
    send(world, route, batch, &mut repetition.shared, reports)?;
    world.published(actor, run.len(), run.len() * first.view().bytes());
    Ok(())
}

fn reply_each<W: World>(
    world: &W,
    vhost: VhostId,
    key: &[u8],
    run: &[Publication<'_>],
    reports: &mut Reports<'_>,
) {
    for (index, publication) in run.iter().enumerate() {
        if reply(world, vhost, key, publication) {
            reports.change(index, |report| report.receivers += 1);
        }
    }
}
