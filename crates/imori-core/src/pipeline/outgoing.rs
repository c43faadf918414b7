//! Messages of a stream to other queues and streams, once it is unlocked.

use std::slice;

use super::batch::Batch;
use super::resolve::resolve;
use super::send::send_to_stores;
use crate::id::VhostId;
use crate::message::{Publication, TOPIC_EXCHANGE};
use crate::stream::Outgoing;
use crate::world::World;

/// Publishes messages of a stream to the queues and streams of their subjects. No lock may be held.
#[cold]
pub(crate) fn publish_outgoing<W: World>(world: &W, vhost: VhostId, outgoing: Vec<Outgoing>) {
    for Outgoing { subject, form } in outgoing {
        let body = form.body.unwrap_or_default();
        let publication = Publication::new(&form.properties, &form.text, &body);
        let subject = subject.as_bytes();
        let Ok(found) = resolve(world, vhost, TOPIC_EXCHANGE, subject, publication.viewed()) else {
            continue;
        };
        let address = found.address(subject);
        let mut batch = Batch::new(vhost, &address, slice::from_ref(&publication));
        send_to_stores(world, &found.route, &mut batch);
    }
}
