//! Resolves an address to its receivers, and checks the publisher's rights to it.

use std::borrow::Cow;
use std::sync::Arc;

use crate::authorize::{Action, Actor, Object, authorize, is_always_allowed};
use crate::error::BrokerError;
use crate::id::{QueueId, Reader, VhostId};
use crate::message::{
    AddressView, DEFAULT_EXCHANGE, HeaderReaders, MessageView, Properties, TOPIC_EXCHANGE, Value,
    meant_address,
};
use crate::name::Name;
use crate::outbound::{INBOX_PREFIX, Outbound};
use crate::route::{ExchangeKind, Headers, Route, Way};
use crate::time::Time;
use crate::world::World;

/// The route of a message, and the address it was published to.
pub(crate) struct Resolved {
    pub(crate) route: Arc<Route>,
    /// Whether the route's address is the one published to.
    is_own: bool,
}

impl Resolved {
    /// A route that was resolved for exactly its own address.
    pub(crate) fn own(route: Arc<Route>) -> Resolved {
        Resolved { route, is_own: true }
    }

    /// The address of a message with this subject.
    #[inline]
    pub(crate) fn address<'a>(&'a self, subject: &'a [u8]) -> AddressView<'a> {
        let address = &self.route.address;
        if self.is_own { AddressView::new(address) } else { AddressView::passing(&address.exchange, subject) }
    }
}

/// Whether an address is that of an inbox, which has no route.
#[inline]
pub(crate) fn is_inbox(exchange: &[u8], subject: &[u8]) -> bool {
    exchange.is_empty() && subject.starts_with(INBOX_PREFIX)
}

/// Checks that a client may send a message with these properties to an inbox. The right to answer a
/// received message suffices; one of its answers is then used up.
#[inline]
pub(crate) fn authorize_reply<W: World>(
    world: &W,
    actor: &Actor<'_>,
    subject: &[u8],
    properties: &Properties,
) -> Result<(), BrokerError> {
    if !is_always_allowed(actor.identity, Action::Reply) {
        decide_reply(world, actor, subject)?;
    }
    check_kept(properties, &[], subject)
}

#[inline(never)]
fn decide_reply<W: World>(world: &W, actor: &Actor<'_>, subject: &[u8]) -> Result<(), BrokerError> {
    if let Err(refusal) = authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)
        && !answers(world, actor, (DEFAULT_EXCHANGE, subject), Object::Inbox, Outbound::spend_answer)
    {
        world.refused(actor, &refusal);
        return Err(refusal.into());
    }
    Ok(())
}

/// Checks that a client may publish to an address. The right to answer a received message suffices;
/// one of its answers is then used up.
///
/// # Errors
/// [`BrokerError::Refused`].
#[inline]
pub(crate) fn authorize_publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
) -> Result<(), BrokerError> {
    if is_always_allowed(actor.identity, Action::Publish) {
        return Ok(());
    }
    decide_publish(world, actor, exchange, subject)
}

#[inline(never)]
fn decide_publish<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
) -> Result<(), BrokerError> {
    let object = subject_of(world, actor, exchange, subject);
    let Err(refusal) = authorize(actor.identity, Action::Publish, actor.vhost, object) else { return Ok(()) };
    match answers(world, actor, (exchange, subject), object, Outbound::spend_answer) {
        true => Ok(()),
        false => {
            world.refused(actor, &refusal);
            Err(refusal.into())
        }
    }
}

/// Checks that a client may publish any number of messages to an address. The right to answer is
/// not enough.
///
/// # Errors
/// [`BrokerError::Refused`].
#[inline]
pub(crate) fn authorize_run<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
) -> Result<(), BrokerError> {
    if is_always_allowed(actor.identity, Action::Publish) {
        return Ok(());
    }
    decide_run(world, actor, exchange, subject)
}

#[inline(never)]
fn decide_run<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
) -> Result<(), BrokerError> {
    let object = match is_inbox(exchange, subject) {
        true => Object::Inbox,
        false => subject_of(world, actor, exchange, subject),
    };
    Ok(world.authorize(actor, Action::Publish, object)?)
}

/// Whether a message to this address, which is not an inbox, would be allowed. Uses up no answer.
pub fn may_publish<W: World>(world: &W, actor: &Actor<'_>, exchange: &[u8], subject: &[u8]) -> bool {
    let object = subject_of(world, actor, exchange, subject);
    authorize(actor.identity, Action::Publish, actor.vhost, object).is_ok()
        || answers(world, actor, (exchange, subject), object, Outbound::may_answer)
}

fn subject_of<'a, W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &'a [u8],
    subject: &'a [u8],
) -> Object<'a> {
    Object::Subject { exchange, subject, is_topic: is_topic(world, actor, exchange) }
}

/// Whether the actor may answer, and this is the reply address of a message that its connection
/// received.
#[cold]
fn answers<W: World>(
    world: &W,
    actor: &Actor<'_>,
    to: (&[u8], &[u8]),
    object: Object<'_>,
    look: impl FnOnce(&mut Outbound, (&[u8], &[u8]), Time) -> bool,
) -> bool {
    authorize(actor.identity, Action::Answer, actor.vhost, object).is_ok()
        && world.with_outbound(actor.connection, |outbound| look(outbound, to, world.now())) == Some(true)
}

/// Whether an exchange is a topic exchange. Looked up only if the actor's rights depend on it.
#[inline]
pub(crate) fn is_topic<W: World>(world: &W, actor: &Actor<'_>, exchange: &[u8]) -> bool {
    if !actor.identity.is_limited_by_key(actor.vhost, exchange) {
        return false;
    }
    let kind = world.with_router(|_, table| Some(table.exchange(actor.vhost, exchange)?.kind()));
    kind == Some(ExchangeKind::Topic)
}

/// Checks that a delayed message has a queue to wait in, because nothing else stores it.
///
/// # Errors
/// [`BrokerError::NotKept`].
#[inline]
pub(crate) fn check_kept(
    properties: &Properties,
    queues: &[QueueId],
    subject: &[u8],
) -> Result<(), BrokerError> {
    if properties.delay_ms.is_some() && queues.is_empty() {
        return Err(BrokerError::NotKept(Name::new(subject)));
    }
    Ok(())
}

/// Finds the receivers of an address. The route may belong to another address with the same
/// targets. Inlined whatever its callers are, because every message of a client passes here.
///
/// # Errors
/// [`BrokerError::Route`].
#[inline(always)]
pub(crate) fn resolve<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Resolved, BrokerError> {
    let headers = ViewHeaders::of(world, view);
    world.with_router(|router, table| {
        let Way { route, is_own } = router.way(table, vhost, exchange, subject, &headers)?;
        Ok(Resolved { route: Arc::clone(route), is_own })
    })
}

/// Finds the receivers of a message of the broker's own, which goes to the topic exchange.
///
/// # Errors
/// [`BrokerError::Route`].
#[inline(never)]
pub(crate) fn resolve_topic<W: World>(
    world: &W,
    vhost: VhostId,
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Resolved, BrokerError> {
    resolve(world, vhost, TOPIC_EXCHANGE, subject, view)
}

/// Finds the route of exactly this address, for callers that store it.
///
/// # Errors
/// [`BrokerError::Route`].
pub(crate) fn resolve_own<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Arc<Route>, BrokerError> {
    let headers = ViewHeaders::of(world, view);
    world
        .with_router(|router, table| Ok(Arc::clone(router.route(table, vhost, exchange, subject, &headers)?)))
}

/// Finds the combined receivers of several subjects of an exchange, and checks the actor's right to
/// publish to each. The message counts as published to the first.
///
/// # Errors
/// [`BrokerError::Refused`] or [`BrokerError::Route`].
pub(crate) fn resolve_all<W: World>(
    world: &W,
    actor: &Actor<'_>,
    exchange: &[u8],
    (subject, copies): (&[u8], &[Name]),
    view: &MessageView<'_>,
) -> Result<Arc<Route>, BrokerError> {
    let shown = meant_address(exchange, subject).1;
    let one = |subject| -> Result<Arc<Route>, BrokerError> {
        let (exchange, subject) = meant_address(exchange, subject);
        authorize_publish(world, actor, exchange, subject)?;
        let route = resolve_own(world, actor.vhost, exchange, subject, view)?;
        Ok(if copies.is_empty() { route } else { without_denied(world, route, [shown, subject]) })
    };
    let route = one(subject)?;
    if copies.is_empty() {
        return Ok(route);
    }
    let address = Arc::clone(&route.address);
    let mut routes = vec![route];
    for copy in copies {
        routes.push(one(copy.as_bytes())?);
    }
    Ok(Arc::new(Route::together(address, &routes)))
}

/// The route without live readers that are denied one of these subjects: the one that routes the
/// message to them and the one that they would see.
fn without_denied<W: World>(world: &W, route: Arc<Route>, subjects: [&[u8]; 2]) -> Arc<Route> {
    let hears = |reader: &Reader| {
        let denies =
            |outbound: &mut Outbound| subjects.iter().any(|subject| outbound.denies(reader.id, subject));
        world.with_outbound(reader.connection, denies) != Some(true)
    };
    let members = route.groups.iter().flat_map(|group| group.members.iter());
    if route.subscriptions.iter().chain(members).all(hears) {
        return route;
    }
    Arc::new(route.only_to(hears))
}

/// Finds the receivers of a dead letter, which may go to internal exchanges too.
///
/// # Errors
/// [`BrokerError::Route`].
pub(crate) fn resolve_from_broker<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Route, BrokerError> {
    let (exchange, subject) = meant_address(exchange, subject);
    let headers = ViewHeaders::of(world, view);
    world.with_router(|_, table| Ok(table.route_from_broker(vhost, exchange, subject, &headers)?))
}

/// The headers of a message, decoded only if an exchange needs them.
struct ViewHeaders<'a> {
    readers: HeaderReaders,
    view: &'a MessageView<'a>,
}

impl<'a> ViewHeaders<'a> {
    #[inline]
    fn of<W: World>(world: &W, view: &'a MessageView<'a>) -> ViewHeaders<'a> {
        ViewHeaders { readers: world.header_readers(), view }
    }
}

impl Headers for ViewHeaders<'_> {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>)) {
        (self.readers)(self.view.properties.origin).visit_headers(self.view.text, visit);
    }
}
