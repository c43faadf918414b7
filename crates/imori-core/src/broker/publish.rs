//! A message comes in: to an inbox at once, else through an exchange to queues and live subscriptions.

use super::actor::Actor;
use super::distribute::{Letter, PublishReport, bury, distribute, reply, resolve};
use crate::authorize::{Action, Object, authorize};
use crate::error::BrokerError;
use crate::message::Publication;
use crate::outbound::INBOX_PREFIX;
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
    let letter = Letter { publication, deaths: None, echo_to: None };
    let mut dead = Vec::new();
    let report = distribute(world, &route, &letter, &mut |more| dead.extend(more));
    if !dead.is_empty() {
        bury(world, actor.vhost, dead);
    }
    if report.receivers == 0 {
        world.count(Event::Unroutable);
    }
    Ok(report)
}
