//! Where messages go that no consumer accepted.

use std::collections::VecDeque;
use std::sync::Arc;

use super::publish::{Letter, distribute, resolve_dead};
use crate::id::VhostId;
use crate::message::Publication;
use crate::queue::Dead;
use crate::world::{Event, World};

/// Publishes dead messages to where their queues send them. One death can cause others, in
/// queues that are full; they are worked off one after the other, and a circle ends where
/// a message comes back to a queue it died in without having been rejected.
pub(super) fn bury<W: World>(world: &W, vhost: VhostId, dead: Vec<Dead>) {
    let mut dead = VecDeque::from(dead);
    while let Some(letter) = dead.pop_front() {
        world.count(Event::DeadLettered);
        let publication = Publication::of_stored(&letter.message);
        let view = publication.view();
        let (exchange, key) = (letter.exchange.as_bytes(), letter.routing_key.as_bytes());
        let Ok(route) = resolve_dead(world, vhost, exchange, key, &view) else {
            world.count(Event::DeadLetterDropped);
            continue;
        };
        let sent =
            Letter { publication: &publication, deaths: Some(Arc::clone(&letter.deaths)), echo_to: None };
        let report = distribute(world, &route, &sent, &mut |more| dead.extend(more));
        if report.receivers == 0 {
            world.count(Event::DeadLetterDropped);
        }
    }
}
