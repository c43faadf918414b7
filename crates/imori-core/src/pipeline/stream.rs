//! Sends what a stream has for the readers of subjects.

use std::slice;

use super::batch::Batch;
use super::live::{live_receivers, send_live};
use super::offer::offer;
use super::own::publish_own;
use super::report::{PublishReport, Reports};
use super::resolve::{resolve_own, resolve_topic};
use crate::authorize::{Action, Object, authorize};
use crate::delivery::Delivery;
use crate::entries::Entry;
use crate::id::{QueueId, VhostId};
use crate::message::{Address, AddressView, MessageView, OriginId, Properties, Publication, TOPIC_EXCHANGE};
use crate::name::Name;
use crate::outbound::SharedHeaders;
use crate::queue::{Effects, Queue};
use crate::route::Route;
use crate::stream::{Advisory, Outgoing, StreamForm, StreamMessage};
use crate::streaming::{Outlet, Sent};
use crate::time::Time;
use crate::world::{StreamServices as _, World};

/// Sends a message of the broker's own to the live readers of a subject; returns how many took it.
pub fn answer<W: World>(world: &W, vhost: VhostId, subject: &[u8], publication: &Publication<'_>) -> usize {
    let Ok(found) = resolve_topic(world, vhost, subject, publication.viewed()) else { return 0 };
    let address = found.address(subject);
    let batch = Batch::new(vhost, &address, slice::from_ref(publication));
    let mut report = PublishReport::default();
    let mut shared = SharedHeaders::for_receivers(live_receivers(&found.route));
    send_live(world, &found.route, batch, &mut shared, &mut Reports::Sum(&mut report));
    report.receivers
}

/// Sends what a stream can send now. The stream is locked, so that its readers get everything in order.
pub(crate) fn send_from_stream<W: World>(
    world: &W,
    (id, queue): (QueueId, &mut Queue),
    now: Time,
    effects: &mut Effects,
) {
    let vhost = queue.vhost();
    queue.expire_in_stream(now, effects);
    publish_own(world, queue, now, effects);
    queue.send_from_stream(now, &mut Readers { world, vhost, last: None }, effects);
    let mut offer = |reader, delivery: &Delivery<'_>| {
        offer(world, id, reader, delivery, &mut SharedHeaders::for_receivers(1))
    };
    queue.deliver_from_stream(now, &mut offer);
}

/// The readers of the subjects of a vhost.
pub(crate) struct Readers<'w, W> {
    world: &'w W,
    vhost: VhostId,
    /// The last subject that was looked up, and its route.
    last: Option<(Name, std::sync::Arc<Route>)>,
}

impl<'w, W: World> Readers<'w, W> {
    /// The readers of subjects of this vhost.
    pub(crate) fn of(world: &'w W, vhost: VhostId) -> Readers<'w, W> {
        Readers { world, vhost, last: None }
    }

    fn route(&mut self, subject: &Name) -> Option<std::sync::Arc<Route>> {
        if let Some((_, route)) = self.last.as_ref().filter(|(last, _)| last == subject) {
            return Some(std::sync::Arc::clone(route));
        }
        let properties = Properties::new(OriginId::BROKER);
        let view = MessageView { properties: &properties, text: b"", body: b"" };
        let route = resolve_own(self.world, self.vhost, TOPIC_EXCHANGE, subject.as_bytes(), &view).ok()?;
        self.last = Some((subject.clone(), std::sync::Arc::clone(&route)));
        Some(route)
    }
}

impl<W: World> Outlet for Readers<'_, W> {
    fn has_readers(&mut self, subject: &Name, group: Option<&Name>) -> bool {
        let Some(route) = self.route(subject) else { return false };
        match group {
            Some(name) => route.groups.iter().any(|group| group.name == *name),
            None => !route.subscriptions.is_empty() || !route.groups.is_empty(),
        }
    }

    fn new_pin(&mut self) -> Name {
        let id: String = self.world.secret().iter().map(|byte| format!("{byte:02x}")).collect();
        Name::from(id.as_str())
    }

    fn advise(&mut self, advisory: &Advisory<'_>) -> Option<Outgoing> {
        let forms = self.world.streams().forms();
        let subject = Name::new(&forms.advisory_subject(advisory));
        let route = self.route(&subject).filter(|route| !route.is_empty())?;
        let form = forms.advisory(advisory, self.world.secret());
        self.send_form(&route, &subject, &StreamMessage::Answer(b""), &form);
        (!route.queues.is_empty()).then_some(Outgoing { subject, form })
    }

    fn may_publish(&mut self, user: &[u8], subject: &Name) -> bool {
        let subject =
            Object::Subject { exchange: TOPIC_EXCHANGE, subject: subject.as_bytes(), is_topic: true };
        let identity = self.world.identity_of(user);
        identity.is_some_and(|identity| authorize(&identity, Action::Publish, self.vhost, subject).is_ok())
    }

    fn publish(&mut self, subject: &Name, message: &StreamMessage<'_>) -> Option<Outgoing> {
        let route = self.route(subject).filter(|route| !route.is_empty())?;
        let form = self.world.streams().forms().form(message, self.world.header_readers());
        self.send_form(&route, subject, message, &form);
        if route.queues.is_empty() {
            return None;
        }
        let body = form.body.or_else(|| Some(sent_on(message)?.message().view().body.to_vec()));
        Some(Outgoing { subject: subject.clone(), form: StreamForm { body, ..form } })
    }

    fn send(&mut self, subject: &Name, message: &StreamMessage<'_>) -> Sent {
        let Some(route) = self.route(subject) else { return Sent::Nobody };
        let form = self.world.streams().forms().form(message, self.world.header_readers());
        match self.send_form(&route, subject, message, &form) {
            PublishReport { receivers: 0, .. } => Sent::Nobody,
            PublishReport { slow_reader: Some(_), .. } => Sent::SlowReader,
            _ => Sent::Taken,
        }
    }
}

/// The stored message that is sent on.
fn sent_on<'a>(message: &StreamMessage<'a>) -> Option<&'a Entry> {
    match message {
        StreamMessage::Delivery { entry, .. }
        | StreamMessage::Direct { entry, .. }
        | StreamMessage::Republished { entry, .. } => Some(*entry),
        _ => None,
    }
}

impl<W: World> Readers<'_, W> {
    /// Sends a message in its form to the live readers of a route.
    fn send_form(
        &self,
        route: &Route,
        subject: &Name,
        message: &StreamMessage<'_>,
        form: &StreamForm,
    ) -> PublishReport {
        let own = Address::new(TOPIC_EXCHANGE, subject.as_bytes());
        // A delivery keeps its subject, an answer has the one that it goes to.
        let other = match message {
            StreamMessage::Delivery { entry, delivery, .. } => {
                let subject = entry.envelope().address.subject.as_bytes();
                self.world.streams().forms().subject(delivery.stream, subject)
            }
            _ => None,
        };
        let address = match (message, &other) {
            (StreamMessage::Delivery { entry, .. }, None) => AddressView::new(&entry.envelope().address),
            (_, other) => AddressView::passing(&own.exchange, other.as_deref().unwrap_or(subject.as_bytes())),
        };
        let (properties, text) = (&form.properties, &form.text);
        let publication = match (&form.body, sent_on(message)) {
            (Some(body), _) => Publication::new(properties, text, body),
            (None, Some(entry)) => match entry.message().shared_body() {
                Some(shared) => Publication::with_shared_body(properties, text, shared),
                None => Publication::new(properties, text, entry.message().view().body),
            },
            (None, None) => Publication::new(properties, text, b""),
        };
        let batch = Batch::new(self.vhost, &address, slice::from_ref(&publication));
        let mut report = PublishReport::default();
        let reports = &mut Reports::Sum(&mut report);
        send_live(self.world, route, batch, &mut SharedHeaders::for_receivers(1), reports);
        report
    }
}
