//! A message comes in: to an inbox at once, else through an exchange to queues and live subscriptions.

use std::sync::Arc;

use super::actor::Actor;
use super::distribute::{Letter, PublishReport, bury, distribute, live_receivers, reply, resolve};
use crate::authorize::{Action, Object, authorize};
use crate::error::BrokerError;
use crate::message::{Address, Publication};
use crate::outbound::{INBOX_PREFIX, SharedHeaders};
use crate::route::Route;
use crate::world::{Event, World};

/// Publishes a message to a subject of an exchange.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`]; a message that nobody gets is not an error.
pub fn publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
    publication: &Publication<'_>,
) -> Result<PublishReport, BrokerError> {
    world.count(Event::Published);
    if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
        authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
        return Ok(reply(world, subject, publication));
    }
    authorize(actor.identity, Action::Publish, actor.vhost, Object::Exchange { exchange, subject })?;
    let route = resolve(world, actor.vhost, exchange, subject, &publication.view())?;
    let mut shared = SharedHeaders::for_receivers(live_receivers(&route));
    Ok(deliver(world, actor, &route, publication, &mut shared))
}

/// What a publisher that repeats itself need not have found and written again.
#[derive(Debug, Default)]
pub struct Repetition {
    version: u64,
    route: Option<Arc<Route>>,
    shared: SharedHeaders,
}

/// Publishes a message like the one before: to the same subject of the same exchange, with the
/// same headers and a body of the same length. Only then may `repetition` be used again.
///
/// # Errors
/// As [`publish`].
pub fn publish_again<W: World>(
    world: &W,
    actor: &Actor<'_>,
    address: &Address,
    publication: &Publication<'_>,
    repetition: &mut Repetition,
) -> Result<PublishReport, BrokerError> {
    let (exchange, subject) = (address.exchange.as_bytes(), address.subject.as_bytes());
    let version = world.with_router(|_, table| table.version());
    let route = match &repetition.route {
        Some(route) if repetition.version == version => route,
        _ => {
            if exchange.is_empty() && subject.starts_with(INBOX_PREFIX) {
                return publish(world, actor, exchange, subject, publication);
            }
            let route = resolve(world, actor.vhost, exchange, subject, &publication.view())?;
            if !route.is_cacheable {
                return publish(world, actor, exchange, subject, publication);
            }
            repetition.version = version;
            repetition.shared = SharedHeaders::for_repetition(live_receivers(&route));
            repetition.route.insert(route)
        }
    };
    world.count(Event::Published);
    authorize(actor.identity, Action::Publish, actor.vhost, Object::Exchange { exchange, subject })?;
    Ok(deliver(world, actor, route, publication, &mut repetition.shared))
}

#[inline]
fn deliver<W: World>(
    world: &W,
    actor: &Actor<'_>,
    route: &Route,
    publication: &Publication<'_>,
    shared: &mut SharedHeaders,
) -> PublishReport {
    let letter = Letter { publication, deaths: None, echo_to: None };
    let mut dead = Vec::new();
    let report = distribute(world, route, &letter, shared, &mut |more| dead.extend(more));
    if !dead.is_empty() {
        bury(world, actor.vhost, dead);
    }
    if report.receivers == 0 && report.refused_by.is_none() {
        world.count(Event::Unroutable);
    }
    report
}
