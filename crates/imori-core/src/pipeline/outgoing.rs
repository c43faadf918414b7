//! Messages of the broker's own: those of a stream to other queues and streams once it is unlocked, and advisories.

use std::slice;

use super::batch::Batch;
use super::live::live_receivers;
use super::report::{PublishReport, Reports};
use super::resolve::{Resolved, resolve_topic};
use super::send::{send, send_to_stores};
use crate::id::VhostId;
use crate::message::{MessageView, OriginId, Properties, Publication};
use crate::outbound::SharedHeaders;
use crate::stream::{Outgoing, StreamForm};
use crate::world::World;

/// Publishes messages of a stream to the queues and streams of their subjects. No lock may be held.
#[cold]
pub(crate) fn publish_outgoing<W: World>(world: &W, vhost: VhostId, outgoing: Vec<Outgoing>) {
    for Outgoing { subject, form } in outgoing {
        let body = form.body.unwrap_or_default();
        let publication = Publication::new(&form.properties, &form.text, &body);
        let subject = subject.as_bytes();
        let Ok(found) = resolve_topic(world, vhost, subject, publication.viewed()) else { continue };
        let address = found.address(subject);
        let batch = Batch::new(vhost, &address, slice::from_ref(&publication));
        send_to_stores(world, &found.route, batch);
    }
}

/// Publishes a message of the broker's own to a subject, if it has any receiver. No lock may be held.
pub fn announce<W: World>(world: &W, vhost: VhostId, subject: &[u8], form: impl FnOnce() -> StreamForm) {
    let none = Properties::new(OriginId::BROKER);
    let view = MessageView { properties: &none, text: b"", body: b"" };
    let Ok(found) = resolve_topic(world, vhost, subject, &view) else { return };
    if !found.route.is_empty() {
        announce_to(world, vhost, subject, &found, form());
    }
}

#[inline(never)]
fn announce_to<W: World>(world: &W, vhost: VhostId, subject: &[u8], found: &Resolved, form: StreamForm) {
    let body = form.body.unwrap_or_default();
    let publication = Publication::new(&form.properties, &form.text, &body);
    let address = found.address(subject);
    let batch = Batch::new(vhost, &address, slice::from_ref(&publication));
    let mut shared = SharedHeaders::for_receivers(live_receivers(&found.route));
    let mut report = PublishReport::default();
    // Nobody could be told that a queue is full.
    let _ = send(world, &found.route, batch, &mut shared, &mut Reports::Sum(&mut report));
}
