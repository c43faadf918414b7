//! Dead letters go from the queue that they left to where that sends them.
//!
//! One that was in a durable queue leaves that and comes to the next in one record group: it is in one of
//! them after any crash. In a transaction that group is the transaction's own.

use std::collections::VecDeque;
use std::slice;

use super::batch::Batch;
use super::enqueue::enqueue;
use super::live::{live_receivers, send_live};
use super::record::{moved_record, record_move, record_settled};
use super::report::{PublishReport, Reports};
use super::resolve::resolve_from_broker;
use crate::confirm::Lsn;
use crate::delivery::RecordRef;
use crate::id::VhostId;
use crate::limits::{DEAD_LETTERS_CAUSED_MAX, DEATHS_MAX};
use crate::message::{AddressView, DeathReason, Publication};
use crate::outbound::SharedHeaders;
use crate::queue::DeadLetter;
use crate::record::NewRecord;
use crate::route::Route;
use crate::world::{Counter, World};

/// Publishes dead letters to where their queues send them.
///
/// One can cause others, in queues that are full. They are worked off one after the other, and a circle ends where a
/// message comes back to a queue it died in without having been rejected. Their number is limited, as one letter to
/// many queues without room would make as many of each.
pub(crate) fn publish_dead_letters<W: World>(world: &W, vhost: VhostId, dead: Vec<DeadLetter>) {
    let mut dead = VecDeque::from(dead);
    let mut left = dead.len() + DEAD_LETTERS_CAUSED_MAX;
    let mut caused = Vec::new();
    while let Some(letter) = dead.pop_front() {
        world.count(letter.counter());
        let Some(route) = route_of(world, vhost, &letter).filter(|_| left > 0) else {
            world.count(Counter::DeadLetterDropped);
            record_settled(world, letter.record_ref.as_slice());
            continue;
        };
        left -= 1;
        with_batch(vhost, &letter, &route, |mut batch| {
            send_and_move(world, &route, &mut batch, letter.record_ref, &mut caused);
        });
        dead.extend(caused.drain(..));
    }
}

/// Moves a dead letter from where it was to all of its route.
///
/// One that the journal does not take in one piece goes in two: a crash between them leaves it in its old queue, and
/// in some of the new ones too. One that it does not take at all, as its files are smaller than when it was published,
/// or its deaths have made it longer, is dropped.
fn send_and_move<W: World>(
    world: &W,
    route: &Route,
    batch: &mut Batch<'_>,
    from: Option<RecordRef>,
    dead: &mut Vec<DeadLetter>,
) {
    if let Some(first) = record_move(world, route, batch, from) {
        batch.first = first;
        send_recorded(world, route, batch, dead);
    } else if let Some((first, last)) = route.halves() {
        send_and_move(world, &first, batch, None, dead);
        send_and_move(world, &last, batch, from, dead);
    } else {
        world.count(Counter::DeadLetterDropped);
        record_settled(world, from.as_slice());
    }
}

/// Gives a dead letter, which is recorded, to all of its route.
fn send_recorded<W: World>(world: &W, route: &Route, batch: &Batch<'_>, dead: &mut Vec<DeadLetter>) {
    let mut shared = SharedHeaders::for_receivers(live_receivers(route));
    let mut report = PublishReport::default();
    let mut reports = Reports::Sum(&mut report);
    enqueue(world, &route.queues, batch, &mut shared, &mut reports, dead);
    send_live(world, route, batch, &mut shared, &mut reports);
    if report.receivers == 0 {
        world.count(Counter::DeadLetterDropped);
    }
}

/// A dead letter that moves together with something else.
pub(crate) struct Move {
    dead: DeadLetter,
    /// None where it goes nowhere.
    route: Option<Route>,
    /// The record of the message where it goes to, if that keeps it.
    pub(crate) record: Option<NewRecord>,
}

impl Move {
    /// Finds where a dead letter goes; nobody is told of it yet.
    pub(crate) fn of<W: World>(world: &W, vhost: VhostId, dead: DeadLetter) -> Move {
        let route = route_of(world, vhost, &dead);
        let record = route
            .as_ref()
            .and_then(|route| with_batch(vhost, &dead, route, |batch| moved_record(world, route, &batch)));
        Move { dead, route, record }
    }

    /// The record that says where it was.
    pub(crate) fn record_ref(&self) -> Option<RecordRef> {
        self.dead.record_ref
    }

    /// Sends it, once its record has this number. Messages that leave full queues are added to `dead`.
    pub(crate) fn send<W: World>(&self, world: &W, vhost: VhostId, first: Lsn, dead: &mut Vec<DeadLetter>) {
        world.count(self.dead.counter());
        let Some(route) = &self.route else {
            world.count(Counter::DeadLetterDropped);
            return;
        };
        with_batch(vhost, &self.dead, route, |batch| {
            send_recorded(world, route, &Batch { first, ..batch }, dead);
        });
    }
}

impl DeadLetter {
    /// The counter of what it died of.
    fn counter(&self) -> Counter {
        let latest = self.deaths.iter().next();
        Counter::dead_lettered(latest.map_or(DeathReason::Rejected, |death| death.reason))
    }
}

/// The route of a dead letter, if its exchange is there and it has not died too often.
fn route_of<W: World>(world: &W, vhost: VhostId, letter: &DeadLetter) -> Option<Route> {
    if letter.deaths.len() > DEATHS_MAX {
        return None;
    }
    let (exchange, key) = (letter.exchange.as_bytes(), letter.routing_key.as_bytes());
    resolve_from_broker(world, vhost, exchange, key, &letter.message.view()).ok()
}

fn with_batch<R>(vhost: VhostId, letter: &DeadLetter, route: &Route, f: impl FnOnce(Batch<'_>) -> R) -> R {
    let publication = Publication::of_stored(&letter.message);
    let address = AddressView::new(&route.address);
    let batch = Batch::new(vhost, &address, slice::from_ref(&publication));
    f(Batch { deaths: Some(&letter.deaths), ..batch })
}
