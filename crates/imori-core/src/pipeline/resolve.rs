//! Resolves an address to its receivers, for a publisher that may send there.

use std::borrow::Cow;
use std::sync::Arc;

use crate::authorize::{Action, Actor, Object, authorize};
use crate::error::BrokerError;
use crate::id::{QueueId, VhostId};
use crate::message::{AddressView, HeaderReader, MessageView, Properties, Value, meant_address};
use crate::name::Name;
use crate::outbound::INBOX_PREFIX;
use crate::route::{Headers, Route, Way};
use crate::world::World;

/// The receivers of a message, and where it was published to.
pub(crate) struct Resolved {
    pub(crate) route: Arc<Route>,
    /// The address that stands in the route is where it was published to.
    is_own: bool,
}

impl Resolved {
    /// A route of exactly the address that stands in it.
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

/// Tells whether an address is that of an inbox, which has no route.
#[inline]
pub(crate) fn is_inbox(exchange: &[u8], subject: &[u8]) -> bool {
    exchange.is_empty() && subject.starts_with(INBOX_PREFIX)
}

/// Checks that a client may send a message with these properties to an inbox.
#[inline]
pub(crate) fn authorize_reply(
    actor: &Actor<'_>,
    subject: &[u8],
    properties: &Properties,
) -> Result<(), BrokerError> {
    authorize(actor.identity, Action::Reply, actor.vhost, Object::Inbox)?;
    check_kept(properties, &[], subject)
}

/// Checks that somebody may publish to an address.
///
/// # Errors
/// [`BrokerError::Refused`].
#[inline]
pub(crate) fn authorize_publish(
    actor: &Actor<'_>,
    exchange: &[u8],
    subject: &[u8],
) -> Result<(), BrokerError> {
    authorize(actor.identity, Action::Publish, actor.vhost, Object::Exchange { exchange, subject })?;
    Ok(())
}

/// Checks that a delayed message has a queue to wait in: nobody else keeps it until it is due.
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

/// Finds the receivers of an address. The route may be that of an address that goes the same way.
///
/// # Errors
/// [`BrokerError::Route`].
#[inline]
pub(crate) fn resolve<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Resolved, BrokerError> {
    let headers = ViewHeaders { reader: world.header_reader(view.properties.origin), text: view.text };
    world.with_router(|router, table| {
        let Way { route, is_own } = router.way(table, vhost, exchange, subject, &headers)?;
        Ok(Resolved { route: Arc::clone(route), is_own })
    })
}

/// Finds the route of exactly this address, as somebody keeps it.
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
    let headers = ViewHeaders { reader: world.header_reader(view.properties.origin), text: view.text };
    world
        .with_router(|router, table| Ok(Arc::clone(router.route(table, vhost, exchange, subject, &headers)?)))
}

/// Finds the receivers of several subjects of an exchange together, for an actor who may publish to all of them. The
/// message is published to the first.
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
    let one = |subject| {
        let (exchange, subject) = meant_address(exchange, subject);
        authorize_publish(actor, exchange, subject)?;
        resolve_own(world, actor.vhost, exchange, subject, view)
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

/// Finds the receivers of a dead letter, which also reaches internal exchanges.
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
    let headers = ViewHeaders { reader: world.header_reader(view.properties.origin), text: view.text };
    world.with_router(|_, table| Ok(table.route_from_broker(vhost, exchange, subject, &headers)?))
}

/// The headers of a message, read only when an exchange asks for them.
struct ViewHeaders<'a> {
    reader: &'a dyn HeaderReader,
    text: &'a [u8],
}

impl Headers for ViewHeaders<'_> {
    fn visit<'a>(&'a self, visit: &mut dyn FnMut(Cow<'a, [u8]>, Value<'a>)) {
        self.reader.visit_headers(self.text, visit);
    }
}
