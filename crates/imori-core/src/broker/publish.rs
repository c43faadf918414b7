//! A message comes in: to an inbox at once, else through an exchange to queues and live subscriptions.

use std::slice;
use std::sync::Arc;

use super::actor::Actor;
use super::distribute::{
    PublishReport, Resolved, bury, check_kept, distribute, distribute_live, live_receivers, reply, resolve,
    resolve_passing, send_to_own,
};
use super::letter::Letter;
use super::once::enqueue_once;
use super::record::{Look, record_letter};
use crate::authorize::{Action, Object, authorize};
use crate::confirm::{Confirm, Lsn};
use crate::error::BrokerError;
use crate::message::{Address, AddressView, Publication};
use crate::outbound::{INBOX_PREFIX, SharedHeaders};
use crate::queue::Dead;
use crate::route::Route;
use crate::world::{Event, World};

/// Publishes a message to a subject of an exchange.
///
/// # Errors
/// [`BrokerError::Refused`], [`BrokerError::Route`] or [`BrokerError::RecordTooLarge`], and then nobody has it; a
/// message that nobody gets is not an error.
pub fn publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
        authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
        check_kept(publication.view().head, &[], subject)?;
        world.count(Event::Published);
        return Ok(reply(world, subject, publication));
    }
    let found = find(world, actor, exchange, subject, publication)?;
    publish_to(world, actor, subject, &found, publication)
}

/// The same for who makes the queue where there is none and publishes to that: `None` where none would get it, and
/// then it is not published.
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
    let found = find(world, actor, exchange, subject, publication)?;
    if found.route.queues.is_empty() {
        return Ok(None);
    }
    publish_to(world, actor, subject, &found, publication).map(Some)
}

fn find<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<Resolved, BrokerError> {
    authorize(actor.identity, Action::Publish, actor.vhost, Object::Exchange { exchange, subject })?;
    resolve_passing(world, actor.vhost, exchange, subject, &publication.view())
}

#[inline]
fn publish_to<W: World>(
    world: &W,
    actor: &Actor<'_>,
    subject: &[u8],
    found: &Resolved,
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    check_kept(publication.view().head, &found.route.queues, subject)?;
    let mut shared = SharedHeaders::for_receivers(live_receivers(&found.route));
    let run = slice::from_ref(publication);
    deliver(world, actor, &found.route, &found.address(subject), run, &mut shared)
}

/// Gives a message of the broker's own to one subscription of the actor's connection that hears this
/// subject, and to nobody else; false where there is none.
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
    let found = resolve_passing(world, actor.vhost, exchange, subject, &publication.view())?;
    let address = found.address(subject);
    Ok(send_to_own(world, &found.route, &address, actor.vhost, actor.connection, publication))
}

/// What a publisher that repeats itself need not have found and written again.
#[derive(Debug, Default)]
pub struct Repetition {
    /// The table's version that the route holds for.
    version: Option<u64>,
    route: Option<Arc<Route>>,
    shared: SharedHeaders,
    /// Where no queue gets it, one is made and it is published to that.
    makes_queue: bool,
}

impl Repetition {
    /// What is not found yet. Of what makes its queue where there is none, nothing is published by
    /// [`publish_again`] that no queue would get.
    pub fn new(makes_queue: bool) -> Repetition {
        Repetition { makes_queue, ..Repetition::default() }
    }

    /// Tells whether a queue that got the last run is so long that its publishers wait: then the next is to be
    /// published by [`publish`], for which they ask.
    #[inline]
    pub fn is_pressed<W: World>(&self, world: &W) -> bool {
        world.gauge().pressing() > 0
            && self.route.as_ref().is_some_and(|route| {
                route.queues.iter().any(|id| world.with_queue(*id, |queue| queue.is_pressing()) == Some(true))
            })
    }

    /// How many live receivers each message had last, if that is known.
    pub fn live_receivers(&self) -> Option<usize> {
        self.route.as_deref().map(live_receivers)
    }
}

/// Publishes a run of messages like the one before: to the same subject of the same exchange, with the
/// same headers and bodies of the same length, and all left to the same connection or to none. Only then
/// may `repetition` be used again. Of a queue that is gone, all of them find nothing, or none of them.
///
/// # Errors
/// As [`publish`]; then none of them was published.
pub fn publish_again<W: World>(
    world: &W,
    actor: &Actor<'_>,
    address: &Address,
    run: &[Publication<'_>],
    repetition: &mut Repetition,
) -> Result<PublishReport, BrokerError> {
    let Some(first) = run.first() else {
        return Ok(PublishReport::default());
    };
    let (exchange, subject) = (address.exchange.as_bytes(), address.subject.as_bytes());
    let version = world.with_router(|_, table| table.version());
    let head = first.view().head;
    let route = match &repetition.route {
        Some(route) if repetition.version == Some(version) => route,
        _ => {
            repetition.route = None;
            if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
                authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
                check_kept(head, &[], subject)?;
                world.count_many(Event::Published, run.len());
                let replies = run.iter().map(|publication| reply(world, subject, publication).receivers);
                return Ok(PublishReport { receivers: replies.sum(), ..PublishReport::default() });
            }
            let route = resolve(world, actor.vhost, exchange, subject, &first.view())?;
            repetition.version = route.is_cacheable.then_some(version);
            repetition.shared = SharedHeaders::for_repetition(live_receivers(&route));
            repetition.route.insert(route)
        }
    };
    authorize(actor.identity, Action::Publish, actor.vhost, Object::Exchange { exchange, subject })?;
    if repetition.makes_queue && route.queues.is_empty() {
        return Ok(PublishReport::default());
    }
    check_kept(head, &route.queues, subject)?;
    deliver(world, actor, route, &AddressView::new(&route.address), run, &mut repetition.shared)
}

#[inline]
fn deliver<W: World>(
    world: &W,
    actor: &Actor<'_>,
    route: &Route,
    address: &AddressView<'_>,
    run: &[Publication<'_>],
    shared: &mut SharedHeaders,
) -> Result<PublishReport, BrokerError> {
    let echo_to = run.first().and_then(Publication::left_out);
    let mut letter = Letter { vhost: actor.vhost, address, run, deaths: None, first: Lsn::NONE, echo_to };
    let mut dead = Vec::new();
    let look = Look::at(world, route, &letter);
    look.check(world, &letter)?;
    world.count_many(Event::Published, run.len());
    let (report, confirm) = if look.is_for_once {
        deliver_once(world, route, &letter, shared, &mut dead)
    } else {
        let (first, confirm) = record_letter(world, &look, &letter);
        letter.first = first;
        (distribute(world, route, &letter, shared, &mut |more| dead.extend(more)), confirm)
    };
    if !dead.is_empty() {
        bury(world, actor.vhost, dead);
    }
    if report.receivers == 0 && report.refused_by.is_none() {
        world.count_many(Event::Unroutable, run.len());
    }
    Ok(PublishReport { confirm, ..report })
}

/// Gives messages with an id to a route where some queue takes each id once.
#[cold]
fn deliver_once<W: World>(
    world: &W,
    route: &Route,
    letter: &Letter<'_>,
    shared: &mut SharedHeaders,
    dead: &mut Vec<Dead>,
) -> (PublishReport, Confirm) {
    let (mut report, mut confirm) = (PublishReport::default(), None);
    for (index, publication) in letter.run.iter().enumerate() {
        let letter = letter.of_one(index, publication);
        let of_one =
            enqueue_once(world, route, &letter, publication, &mut report, &mut |more| dead.extend(more));
        confirm = Some(confirm.map_or(of_one, |confirm: Confirm| confirm.and(of_one)));
    }
    distribute_live(world, route, letter, shared, &mut report);
    (report, confirm.unwrap_or_default())
}
