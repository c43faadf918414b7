//! From an address to everybody who gets the message: queues, live subscriptions, groups, an inbox; and from
//! a queue that lets a message go to where it sends its dead letters.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::slice;
use std::sync::Arc;

use super::asked::Asked;
use super::letter::Letter;
use super::move_room::effects_of_arrival;
use super::offer::offer;
use super::record::{moved_record, record_effects, record_move, record_settled};
use crate::confirm::{Confirm, Lsn};
use crate::delivery::{About, Holding};
use crate::error::BrokerError;
use crate::id::{ConnectionId, QueueId, Reader, VhostId};
use crate::limits::{DEAD_LETTERS_CAUSED_MAX, DEATHS_MAX};
use crate::message::{AddressView, Head, HeaderReader, MessageView, Publication, Value};
use crate::name::Name;
use crate::outbound::{InboxAddress, Live, Reply, SharedHeaders};
use crate::queue::{Arrival, Dead};
use crate::record::NewRecord;
use crate::route::{Headers, Route, Way};
use crate::world::{Event, World};

/// What became of a publish.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// Queues, subscriptions and inboxes that have it. With none, a publisher who asked is told so (a return).
    pub receivers: usize,
    /// What the confirm waits for.
    pub confirm: Confirm,
    /// A queue that refused it, being full.
    pub refused_by: Option<Name>,
    /// A receiver who is behind: the publisher should wait for it a moment.
    pub pressed: Option<ConnectionId>,
}

/// Sends a message to the inbox that has this key.
pub(super) fn reply<W: World>(world: &W, key: &[u8], publication: &Publication<'_>) -> PublishReport {
    let sent = InboxAddress::from_key(key)
        .and_then(|to| world.with_outbound(to.owner, |outbound| outbound.reply(&to, publication)));
    match sent {
        Some(Reply::Taken) => PublishReport { receivers: 1, ..PublishReport::default() },
        Some(Reply::Cut) => {
            world.count(Event::CutTooSlow);
            PublishReport::default()
        }
        Some(Reply::Gone) | None => {
            world.count(Event::ReplyDropped);
            PublishReport::default()
        }
    }
}

/// Finds the receivers of a subject in an exchange.
pub(super) fn resolve<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Arc<Route>, BrokerError> {
    let headers = ViewHeaders { reader: world.header_reader(view.head.origin), text: view.text };
    world
        .with_router(|router, table| Ok(Arc::clone(router.route(table, vhost, exchange, subject, &headers)?)))
}

/// Who gets a message, and where it was published to.
pub(super) struct Resolved {
    pub(super) route: Arc<Route>,
    /// Whether the address that stands in the route is where it was published to.
    pub(super) is_own: bool,
}

impl Resolved {
    /// Where a message with this subject was published to.
    #[inline]
    pub(super) fn address<'a>(&'a self, subject: &'a [u8]) -> AddressView<'a> {
        let address = &self.route.address;
        if self.is_own { AddressView::new(address) } else { AddressView::passing(&address.exchange, subject) }
    }
}

/// Finds the receivers of a subject in an exchange, as [`resolve`], for a message whose address nobody may keep.
#[inline]
pub(super) fn resolve_passing<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Resolved, BrokerError> {
    let headers = ViewHeaders { reader: world.header_reader(view.head.origin), text: view.text };
    world.with_router(|router, table| {
        let Way { route, is_own } = router.way(table, vhost, exchange, subject, &headers)?;
        Ok(Resolved { route: Arc::clone(route), is_own })
    })
}

/// Gives messages to all receivers of a route, whose durable queues stand in their records already. What leaves
/// full queues goes to `bury`.
pub(super) fn distribute<W: World>(
    world: &W,
    route: &Route,
    letter: &Letter<'_>,
    shared: &mut SharedHeaders,
    bury: &mut dyn FnMut(Vec<Dead>),
) -> PublishReport {
    let mut report = PublishReport::default();
    match &*route.queues {
        [] => {}
        [queue] => enqueue(world, *queue, letter, &mut report, bury),
        // Message by message, as somebody may read several of them in one session.
        queues => {
            for (index, publication) in letter.run.iter().enumerate() {
                let letter = letter.of_one(index, publication);
                queues.iter().for_each(|queue| enqueue(world, *queue, &letter, &mut report, bury));
            }
        }
    }
    distribute_live(world, route, letter, shared, &mut report);
    report
}

/// Sees to it that a delayed message has a queue to wait in: nobody else keeps it until it is due.
///
/// # Errors
/// [`BrokerError::NotKept`].
#[inline]
pub(super) fn check_kept(head: &Head, queues: &[QueueId], subject: &[u8]) -> Result<(), BrokerError> {
    if head.delay_ms.is_some() && queues.is_empty() {
        return Err(BrokerError::NotKept(Name::new(subject)));
    }
    Ok(())
}

/// How many receivers of a route may share the headers of a delivery.
pub(super) fn live_receivers(route: &Route) -> usize {
    route.subscriptions.len() + route.groups.len()
}

/// Publishes dead messages to where their queues send them. One death can cause others, in
/// queues that are full; they are worked off one after the other, and a circle ends where
/// a message comes back to a queue it died in without having been rejected. What they cause is
/// limited, as one letter to many queues without room would make as many of each.
///
/// One that was in a durable queue leaves that and comes to the next in one record group: it is in one of
/// them after any crash.
pub(super) fn bury<W: World>(world: &W, vhost: VhostId, dead: Vec<Dead>) {
    let mut dead = VecDeque::from(dead);
    let mut left = dead.len() + DEAD_LETTERS_CAUSED_MAX;
    while let Some(letter) = dead.pop_front() {
        world.count(Event::DeadLettered);
        let route = if left == 0 || letter.deaths.len() > DEATHS_MAX {
            None
        } else {
            route_of(world, vhost, &letter)
        };
        let Some(route) = route else {
            world.count(Event::DeadLetterDropped);
            record_settled(world, letter.holding.as_slice());
            continue;
        };
        left -= 1;
        let publication = Publication::of_stored(&letter.message);
        let (address, run) = (AddressView::new(&route.address), slice::from_ref(&publication));
        let deaths = Some(Arc::clone(&letter.deaths));
        let mut sent = Letter { vhost, address: &address, run, deaths, first: Lsn::NONE, echo_to: None };
        send_move(world, &route, &mut sent, letter.holding, &mut |more| dead.extend(more));
    }
}

/// Moves a dead letter from where it was to all of its route. What the journal does not take as one goes in two: a
/// crash between them leaves it in its old queue, and in some of the new ones too. What it does not take at all, as
/// its files are smaller than when it was published, or its deaths have made it longer, is dropped.
fn send_move<W: World>(
    world: &W,
    route: &Route,
    letter: &mut Letter<'_>,
    from: Option<Holding>,
    bury: &mut dyn FnMut(Vec<Dead>),
) {
    if let Some(first) = record_move(world, route, letter, from) {
        letter.first = first;
        send_dead(world, route, letter, bury);
    } else if let Some((first, last)) = route.halves() {
        send_move(world, &first, letter, None, bury);
        send_move(world, &last, letter, from, bury);
    } else {
        world.count(Event::DeadLetterDropped);
        record_settled(world, from.as_slice());
    }
}

/// A dead letter whose move is one with something else.
pub(super) struct Move {
    dead: Dead,
    /// None where it goes nowhere.
    route: Option<Route>,
    /// Of the message where it goes to, if that is kept there.
    pub(super) record: Option<NewRecord>,
}

impl Move {
    /// Finds where a dead letter goes, which nobody is told of yet.
    pub(super) fn of<W: World>(world: &W, vhost: VhostId, dead: Dead) -> Move {
        let route = if dead.deaths.len() > DEATHS_MAX { None } else { route_of(world, vhost, &dead) };
        let mut moved = Move { dead, route, record: None };
        moved.record =
            moved.with_letter(vhost, Lsn::NONE, |route, letter| moved_record(world, route, letter)).flatten();
        moved
    }

    /// The record that says where it was.
    pub(super) fn holding(&self) -> Option<Holding> {
        self.dead.holding
    }

    /// Sends it, once its record has this number. What leaves full queues goes to `bury`.
    pub(super) fn send<W: World>(
        &self,
        world: &W,
        vhost: VhostId,
        first: Lsn,
        bury: &mut dyn FnMut(Vec<Dead>),
    ) {
        world.count(Event::DeadLettered);
        let sent = self.with_letter(vhost, first, |route, letter| send_dead(world, route, letter, bury));
        if sent.is_none() {
            world.count(Event::DeadLetterDropped);
        }
    }

    fn with_letter<R>(
        &self,
        vhost: VhostId,
        first: Lsn,
        f: impl FnOnce(&Route, &Letter<'_>) -> R,
    ) -> Option<R> {
        let route = self.route.as_ref()?;
        let publication = Publication::of_stored(&self.dead.message);
        let (address, run) = (AddressView::new(&route.address), slice::from_ref(&publication));
        let deaths = Some(Arc::clone(&self.dead.deaths));
        Some(f(route, &Letter { vhost, address: &address, run, deaths, first, echo_to: None }))
    }
}

/// Gives a dead letter, which is recorded, to all of its route.
fn send_dead<W: World>(world: &W, route: &Route, letter: &Letter<'_>, bury: &mut dyn FnMut(Vec<Dead>)) {
    let mut shared = SharedHeaders::for_receivers(live_receivers(route));
    if distribute(world, route, letter, &mut shared, bury).receivers == 0 {
        world.count(Event::DeadLetterDropped);
    }
}

/// Where a dead letter goes, if its exchange is there.
fn route_of<W: World>(world: &W, vhost: VhostId, letter: &Dead) -> Option<Route> {
    let (exchange, key) = (letter.exchange.as_bytes(), letter.routing_key.as_bytes());
    resolve_dead(world, vhost, exchange, key, &letter.message.view()).ok()
}

/// Gives messages to the live subscriptions and groups of a route: to one receiver all of them, then to the next,
/// so that each is locked once. A connection that has several readers gets them message by message, as
/// they keep their order from session to session.
pub(super) fn distribute_live<W: World>(
    world: &W,
    route: &Route,
    letter: &Letter<'_>,
    shared: &mut SharedHeaders,
    report: &mut PublishReport,
) {
    // Nothing keeps a message for them until it is due.
    if live_receivers(route) == 0 || letter.is_delayed() {
        return;
    }
    let about = About { address: letter.address, deaths: letter.deaths.as_ref() };
    if !route.groups.is_empty() {
        for (index, publication) in letter.run.iter().enumerate() {
            let letter = letter.of_one(index, publication);
            send_to_each(world, &route.subscriptions, &letter, about, shared, report);
            for group in &route.groups {
                send_to_one(world, &group.members, &letter, about, shared, report);
            }
        }
        return;
    }
    // Readers of one connection stand next to each other.
    for readers in route.subscriptions.chunk_by(|a, b| a.connection == b.connection) {
        if let [_] = readers {
            send_to_each(world, readers, letter, about, shared, report);
            continue;
        }
        for (index, publication) in letter.run.iter().enumerate() {
            let letter = letter.of_one(index, publication);
            send_to_each(world, readers, &letter, about, shared, report);
        }
    }
}

#[inline]
fn send_to_each<W: World>(
    world: &W,
    readers: &[Reader],
    letter: &Letter<'_>,
    about: About<'_>,
    shared: &mut SharedHeaders,
    report: &mut PublishReport,
) {
    for reader in readers {
        if letter.echo_to != Some(reader.connection) {
            send(world, letter.vhost, *reader, letter.run, about, shared, report);
        }
    }
}

fn enqueue<W: World>(
    world: &W,
    id: QueueId,
    letter: &Letter<'_>,
    report: &mut PublishReport,
    bury: &mut dyn FnMut(Vec<Dead>),
) {
    let (address, deaths, now) = (letter.address, letter.deaths.as_ref(), world.now());
    let mut effects = effects_of_arrival(world);
    let outcome = world.with_queue(id, |queue| {
        // A dead letter that came back unrejected would go round for ever.
        if deaths.is_some_and(|deaths| deaths.is_cycle(queue.name())) {
            return None;
        }
        let mut refused = 0;
        for (index, publication) in letter.run.iter().enumerate() {
            let published = queue.publish(
                publication,
                &Arrival { address, deaths, lsn: letter.first.plus(index), now },
                &mut |reader, delivery| offer(world, id, reader, delivery),
                &mut effects,
            );
            refused += usize::from(published.is_err());
        }
        let refused_by = (refused > 0).then(|| queue.name().clone());
        Some((refused, refused_by, Asked::by(world, queue, &mut effects, now)))
    });
    if let Some((refused, refused_by, asked)) = outcome.flatten() {
        report.receivers += letter.run.len() - refused;
        report.refused_by = refused_by.or(report.refused_by.take());
        asked.answer(world, id);
    }
    let dead = record_effects(world, effects);
    if !dead.is_empty() {
        bury(dead);
    }
}

fn send<W: World>(
    world: &W,
    vhost: VhostId,
    reader: Reader,
    run: &[Publication<'_>],
    about: About<'_>,
    shared: &mut SharedHeaders,
    report: &mut PublishReport,
) -> bool {
    let sent =
        world.with_outbound(reader.connection, |outbound| outbound.send(reader.id, run, about, shared));
    match sent {
        Some(Live::Taken) => report.receivers += run.len(),
        Some(Live::Pressed) => {
            report.receivers += run.len();
            report.pressed = Some(reader.connection);
        }
        Some(Live::Exhausted { taken, subscription }) => {
            report.receivers += taken;
            world.with_topology(|topology| topology.unsubscribe(vhost, &subscription, reader));
        }
        Some(Live::NoForm) => {
            world.count_many(Event::NoForm, run.len());
            return false;
        }
        Some(Live::Cut) => {
            world.count(Event::CutTooSlow);
            return false;
        }
        Some(Live::Gone) | None => return false,
    }
    true
}

/// One member of a group gets it: the next in turn of those who have room, else the next in turn.
fn send_to_one<W: World>(
    world: &W,
    members: &[Reader],
    letter: &Letter<'_>,
    about: About<'_>,
    shared: &mut SharedHeaders,
    report: &mut PublishReport,
) {
    if let [only] = members {
        send_to_each(world, slice::from_ref(only), letter, about, shared, report);
        return;
    }
    let turn = world.with_router(|router, _| router.turn(members.len()));
    let (last, first) = members.split_at(turn.min(members.len()));
    let in_turn = || first.iter().chain(last).filter(|member| letter.echo_to != Some(member.connection));
    let has_room = |member: &&Reader| {
        world.with_outbound(member.connection, |outbound| outbound.has_room()).unwrap_or(false)
    };
    for member in in_turn().filter(has_room).chain(in_turn()) {
        if send(world, letter.vhost, *member, letter.run, about, shared, report) {
            return;
        }
    }
}

/// Gives a message to the first of a connection's own subscriptions that hear this subject; false where
/// there is none.
pub(super) fn send_to_own<W: World>(
    world: &W,
    route: &Route,
    address: &AddressView<'_>,
    vhost: VhostId,
    connection: ConnectionId,
    publication: &Publication<'_>,
) -> bool {
    let first = route.subscriptions.partition_point(|reader| reader.connection < connection);
    let own = route.subscriptions.iter().skip(first).take_while(|reader| reader.connection == connection);
    let about = About { address, deaths: None };
    let (run, mut shared) = (slice::from_ref(publication), SharedHeaders::for_receivers(1));
    let mut report = PublishReport::default();
    for reader in own {
        if send(world, vhost, *reader, run, about, &mut shared, &mut report) {
            return true;
        }
    }
    false
}

/// Finds the receivers of a dead letter.
fn resolve_dead<W: World>(
    world: &W,
    vhost: VhostId,
    exchange: &[u8],
    subject: &[u8],
    view: &MessageView<'_>,
) -> Result<Route, BrokerError> {
    let headers = ViewHeaders { reader: world.header_reader(view.head.origin), text: view.text };
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
