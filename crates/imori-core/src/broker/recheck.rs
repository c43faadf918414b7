//! Re-checks the readers of a connection after its user's rights have changed.

use crate::authorize::{Action, Actor, Object, Refusal, authorize, filter, responses};
use crate::id::{ReaderId, SessionId};
use crate::name::Name;
use crate::outbound::{ReaderSpec, Source};
use crate::pipeline::is_topic;
use crate::world::World;

use super::consume::cancel_all;

/// A reader that was ended because its user may no longer have it.
#[derive(Debug)]
pub struct Revoked {
    /// Its number within the connection, by which the protocol knows it.
    pub reader: ReaderId,
    /// The session that numbered its deliveries.
    pub session: SessionId,
    /// Its protocol label.
    pub label: Box<[u8]>,
    /// The source of its messages.
    pub source: Source,
    /// The reason.
    pub refusal: Refusal,
}

/// Checks the readers of the actor's connection against the actor's changed rights. Ends those that
/// are no longer allowed, and renews the filters of the others. Unsettled deliveries stay with
/// their sessions.
pub fn recheck_readers<W: World>(world: &W, actor: &Actor<'_>) -> Vec<Revoked> {
    let responses = responses(actor.identity, actor.vhost);
    let readers = world.with_outbound(actor.connection, |outbound| {
        outbound.set_responses(responses);
        outbound.readers().map(|(id, spec)| (id, spec.clone())).collect::<Vec<_>>()
    });
    let (mut revoked, mut filters) = (Vec::new(), Vec::new());
    for (reader, ReaderSpec { session, label, source, .. }) in readers.unwrap_or_default() {
        match check(world, actor, &source) {
            Ok(()) => {}
            Err(refusal) => {
                revoked.push(Revoked { reader, session, label, source, refusal });
                continue;
            }
        }
        if let Source::Live(subscription) = &source {
            let group = subscription.group.as_ref().map(Name::as_bytes);
            let exchange = subscription.exchange.as_bytes();
            filters.push((reader, filter(actor.identity, actor.vhost, exchange, &subscription.key, group)));
        }
    }
    world.with_outbound(actor.connection, |outbound| {
        filters.into_iter().for_each(|(reader, filter)| outbound.set_filter(reader, filter));
    });
    let ended: Vec<ReaderId> = revoked.iter().map(|revoked| revoked.reader).collect();
    if !ended.is_empty() {
        cancel_all(world, actor, &ended);
    }
    revoked
}

fn check<W: World>(world: &W, actor: &Actor<'_>, source: &Source) -> Result<(), Refusal> {
    match source {
        Source::Live(subscription) => {
            let exchange = subscription.exchange.as_bytes();
            let group = subscription.group.as_ref().map(Name::as_bytes);
            let is_topic = is_topic(world, actor, exchange);
            let object = Object::Pattern { exchange, key: &subscription.key, group, is_topic };
            authorize(actor.identity, Action::Subscribe, actor.vhost, object)
        }
        Source::Queue(id) => {
            // The consumers of a deleted queue are told by its deletion.
            let Some(name) = world.with_queue(*id, |queue| queue.name().clone()) else { return Ok(()) };
            authorize(actor.identity, Action::Consume, actor.vhost, Object::Queue(name.as_bytes()))
        }
    }
}
