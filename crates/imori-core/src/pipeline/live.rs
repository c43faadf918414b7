//! Delivers to live receivers: an inbox, live subscriptions, one member of each group.

use std::slice;

use super::batch::Batch;
use super::report::{PublishReport, Reports};
use crate::delivery::About;
use crate::id::{ConnectionId, Reader, VhostId};
use crate::message::{DEFAULT_EXCHANGE, Publication, meant_address};
use crate::outbound::{InboxAddress, Live, Outbound, Reply, SharedHeaders};
use crate::route::Route;
use crate::world::{Counter, Observer, Sent, World};

/// Sends a message to the inbox with this key; returns whether it exists.
#[inline]
pub(crate) fn reply<W: World>(world: &W, vhost: VhostId, key: &[u8], publication: &Publication<'_>) -> bool {
    if let Some(observer) = world.observer() {
        return reply_observed(world, observer, vhost, key, publication);
    }
    reply_unobserved(world, key, publication)
}

#[cold]
fn reply_observed<W: World>(
    world: &W,
    observer: &dyn Observer,
    vhost: VhostId,
    key: &[u8],
    publication: &Publication<'_>,
) -> bool {
    let first = publication.view();
    let sent = Sent { vhost, exchange: DEFAULT_EXCHANGE, subject: key, first, messages: 1 };
    let from = observer.publishing(&sent);
    let is_taken = reply_unobserved(world, key, publication);
    if let Some(to) = InboxAddress::from_key(key).filter(|_| is_taken) {
        observer.delivered(None, to.owner);
    }
    observer.published(from, &sent, usize::from(is_taken));
    is_taken
}

#[inline]
fn reply_unobserved<W: World>(world: &W, key: &[u8], publication: &Publication<'_>) -> bool {
    let sent = InboxAddress::from_key(key)
        .and_then(|to| world.with_outbound(to.owner, |outbound| outbound.reply(&to, publication)));
    match sent {
        Some(Reply::Taken) => return true,
        Some(Reply::Cut) => world.count(Counter::CutTooSlow),
        Some(Reply::Gone) | None => world.count(Counter::ReplyDropped),
    }
    false
}

/// Delivers a message directly to the reader of a temporary queue; false if it must take the normal
/// way, as nearly all messages do.
#[inline]
pub(crate) fn pass<W: World>(
    world: &W,
    vhost: VhostId,
    (exchange, subject): (&[u8], &[u8]),
    publication: &Publication<'_>,
) -> bool {
    let to = if exchange.is_empty() { InboxAddress::from_queue_name(subject) } else { None };
    let Some(to) = to else { return false };
    // A delayed message must wait in the queue, and an observed one must take the normal way.
    if publication.view().properties.delay_ms.is_some() || world.observer().is_some() {
        return false;
    }
    world.with_outbound(to.owner, |outbound| outbound.pass(&to, vhost, publication)) == Some(true)
}

/// The number of live receivers of a route that may share a delivery's headers.
pub(crate) fn live_receivers(route: &Route) -> usize {
    route.subscriptions.len() + route.groups.len()
}

/// Sends a batch to the live subscriptions and groups of a route. Each receiver gets the whole
/// batch at once, so that it is locked once. A session with several readers gets it message by
/// message, because order is kept per session.
#[inline(always)]
pub(crate) fn send_live<W: World>(
    world: &W,
    route: &Route,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    if live_receivers(route) > 0 {
        send_to_live(world, route, batch, shared, reports);
    }
}

#[inline(never)]
fn send_to_live<W: World>(
    world: &W,
    route: &Route,
    batch: Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    // Live receivers have nothing that could store a delayed message.
    if batch.is_delayed() {
        return;
    }
    match batch.messages {
        [_] => send_message(world, route, &batch, shared, reports),
        _ => send_run(world, route, &batch, shared, reports),
    }
}

/// Sends a single message to all live subscriptions, and to one member of each group.
#[inline]
fn send_message<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    send_to_each(world, &route.subscriptions, batch, shared, reports);
    for group in &route.groups {
        send_to_one(world, &group.members, batch, shared, reports);
    }
}

/// Sends a run of messages to live subscriptions and groups.
#[inline(never)]
fn send_run<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    if !route.groups.is_empty() {
        for (index, batch) in batch.each() {
            send_message(world, route, &batch, shared, &mut reports.one(index));
        }
        return;
    }
    // Readers of one connection are adjacent in a route.
    for readers in route.subscriptions.chunk_by(|a, b| a.connection == b.connection) {
        if readers.len() < 2 || batch.messages.len() < 2 || are_in_sessions_apart(world, readers) {
            send_to_each(world, readers, batch, shared, reports);
            continue;
        }
        for (index, batch) in batch.each() {
            send_to_each(world, readers, &batch, shared, &mut reports.one(index));
        }
    }
}

/// Whether the readers, all of one connection, are in different sessions.
fn are_in_sessions_apart<W: World>(world: &W, readers: &[Reader]) -> bool {
    let Some(Reader { connection, .. }) = readers.first() else { return false };
    let ids = || readers.iter().map(|reader| reader.id);
    world.with_outbound(*connection, |outbound| outbound.are_in_sessions_apart(ids())).unwrap_or(false)
}

/// Sends a message to the first of a connection's own subscriptions that accepts it; false if none
/// does.
pub(crate) fn send_to_own<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    connection: ConnectionId,
) -> bool {
    let first = route.subscriptions.partition_point(|reader| reader.connection < connection);
    let own = route.subscriptions.iter().skip(first).take_while(|reader| reader.connection == connection);
    let (mut shared, mut report) = (SharedHeaders::for_receivers(1), PublishReport::default());
    for reader in own {
        if send(world, *reader, batch, &mut shared, &mut Reports::Sum(&mut report)) {
            return true;
        }
    }
    false
}

#[inline]
fn send_to_each<W: World>(
    world: &W,
    readers: &[Reader],
    batch: &Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    let not_to = batch.not_to();
    for reader in readers {
        if not_to != Some(reader.connection) {
            send(world, *reader, batch, shared, reports);
        }
    }
}

/// Sends a message to one group member: the next in turn that has room, else the next in turn.
fn send_to_one<W: World>(
    world: &W,
    members: &[Reader],
    batch: &Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) {
    if let [only] = members {
        send_to_each(world, slice::from_ref(only), batch, shared, reports);
        return;
    }
    let turn = world.with_router(|router, _| router.turn(members.len()));
    let (last, first) = members.split_at(turn.min(members.len()));
    let not_to = batch.not_to();
    let in_turn = || first.iter().chain(last).filter(|member| not_to != Some(member.connection));
    let has_room = |member: &&Reader| {
        world.with_outbound(member.connection, |outbound| outbound.has_room()).unwrap_or(false)
    };
    for member in in_turn().filter(has_room).chain(in_turn()) {
        if send(world, *member, batch, shared, reports) {
            return;
        }
    }
}

/// Notes the reply addresses of messages, because the receiver may publish only to these.
#[cold]
fn note_requests<W: World>(world: &W, outbound: &mut Outbound, messages: &[Publication<'_>]) {
    for view in messages.iter().map(Publication::view) {
        let reader = world.header_reader(view.properties.origin);
        if let Some((exchange, subject)) = reader.reply_address(&view) {
            outbound.note_request(meant_address(&exchange, &subject), world.now());
        }
    }
}

/// Sends a batch to a reader; returns whether it was taken.
#[inline]
fn send<W: World>(
    world: &W,
    reader: Reader,
    batch: &Batch<'_>,
    shared: &mut SharedHeaders,
    reports: &mut Reports<'_>,
) -> bool {
    let Batch { vhost, address, messages, deaths, .. } = *batch;
    let about = About { address, deaths };
    let sent = world.with_outbound(reader.connection, |outbound| {
        let sent = outbound.send(reader.id, messages, about, shared);
        if outbound.notes_requests()
            && matches!(sent, Live::Taken | Live::SlowReader | Live::Exhausted { .. })
        {
            note_requests(world, outbound, messages);
        }
        sent
    });
    if let Some(observer) = world.observer()
        && matches!(sent, Some(Live::Taken | Live::SlowReader | Live::Exhausted { .. }))
    {
        observer.delivered(None, reader.connection);
    }
    match sent {
        Some(Live::Taken) => {
            reports.received(messages.len());
            true
        }
        sent => note_unusual(world, sent, reader, (vhost, messages.len()), reports),
    }
}

/// Handles any other result of a delivery than plain success; returns whether it was taken.
#[inline(never)]
fn note_unusual<W: World>(
    world: &W,
    sent: Option<Live>,
    reader: Reader,
    (vhost, messages): (VhostId, usize),
    reports: &mut Reports<'_>,
) -> bool {
    match sent {
        Some(Live::Taken) => reports.received(messages),
        Some(Live::SlowReader) => {
            reports.received(messages);
            reports.slow_reader(reader.connection);
        }
        Some(Live::Exhausted { taken, subscription }) => {
            reports.received(taken);
            world.with_topology(|topology| topology.unsubscribe(vhost, &subscription, reader));
        }
        Some(Live::NoForm) => {
            world.count_many(Counter::NoForm, messages);
            return false;
        }
        Some(Live::Cut) => {
            world.count(Counter::CutTooSlow);
            return false;
        }
        Some(Live::Denied | Live::Unwanted | Live::Gone) | None => return false,
    }
    true
}
