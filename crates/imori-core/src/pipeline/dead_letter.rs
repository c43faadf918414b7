//! Publishes dead letters from the queue they left to the target that it names.
//!
//! A dead letter of a durable queue is settled there and recorded in its new queues in one record
//! group, so that after a crash it is in one or the other. In a transaction that group is the
//! transaction's own.

use std::collections::VecDeque;
use std::slice;
use std::sync::OnceLock;

use super::batch::Batch;
use super::enqueue::enqueue;
use super::live::{live_receivers, send_live};
use super::record::{moved_record, record_move, record_settled};
use super::report::{PublishReport, Reports};
use super::resolve::resolve_from_broker;
use crate::confirm::Lsn;
use crate::delivery::RecordRef;
use crate::id::{QueueId, VhostId};
use crate::limits::{DEAD_LETTERS_CAUSED_MAX, DEATHS_MAX};
use crate::message::{AddressView, DeathReason, Publication};
use crate::outbound::SharedHeaders;
use crate::queue::DeadLetter;
use crate::record::NewRecord;
use crate::route::Route;
use crate::world::{Counter, World};

/// Publishes dead letters to the targets that their queues name.
///
/// A dead letter can cause others when it arrives in a full queue. They are processed iteratively,
/// and a cycle ends where a message returns, without a rejection, to a queue in which it died.
/// Their number is limited, because a dead letter sent to many full queues could cause as many
/// again in each.
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
        observe(world, vhost, &letter);
        with_batch(vhost, &letter, &route, |mut batch| {
            send_and_move(world, &route, &mut batch, letter.record_ref, &mut caused);
        });
        dead.extend(caused.drain(..));
    }
}

/// Moves a dead letter from its queue to all targets of its route.
///
/// If the journal cannot take the move as one group, it is split in two: after a crash in between,
/// the message is in its old queue and in some of the new ones. If no part fits, because journal
/// files became smaller or the death history longer, the message is dropped.
fn send_and_move<W: World>(
    world: &W,
    route: &Route,
    batch: &mut Batch<'_>,
    from: Option<RecordRef>,
    dead: &mut Vec<DeadLetter>,
) {
    if let Some(rest) = send_to_streams(world, route, batch, dead) {
        return send_and_move(world, &rest, batch, from, dead);
    }
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

/// Gives a dead letter to the streams of its route, which record it before it leaves its old queue: after a crash in
/// between it is in both. Returns the rest of the route; `None` if there are no streams.
fn send_to_streams<W: World>(
    world: &W,
    route: &Route,
    batch: &Batch<'_>,
    dead: &mut Vec<DeadLetter>,
) -> Option<Route> {
    let is_stream = |id: &QueueId| world.with_queue(*id, |queue| queue.is_stream()) == Some(true);
    let (streams, queues): (Vec<QueueId>, Vec<QueueId>) = route.queues.iter().partition(|id| is_stream(id));
    if streams.is_empty() {
        return None;
    }
    let mut report = PublishReport::default();
    let shared = &mut SharedHeaders::for_receivers(1);
    enqueue(world, &streams, *batch, shared, &mut Reports::Sum(&mut report), dead);
    Some(Route { queues, durability: OnceLock::new(), ..route.clone() })
}

/// Delivers a recorded dead letter to all targets of its route.
fn send_recorded<W: World>(world: &W, route: &Route, batch: &Batch<'_>, dead: &mut Vec<DeadLetter>) {
    let mut shared = SharedHeaders::for_receivers(live_receivers(route));
    let mut report = PublishReport::default();
    let mut reports = Reports::Sum(&mut report);
    enqueue(world, &route.queues, *batch, &mut shared, &mut reports, dead);
    send_live(world, route, *batch, &mut shared, &mut reports);
    if report.receivers == 0 {
        world.count(Counter::DeadLetterDropped);
    }
}

/// A dead letter that moves as part of a larger record group.
pub(crate) struct Move {
    dead: DeadLetter,
    /// `None` if it has no target and is dropped.
    route: Option<Route>,
    /// Its record at the target, if durable queues store it there.
    pub(crate) record: Option<NewRecord>,
}

impl Move {
    /// Prepares a move without delivering anything yet.
    pub(crate) fn of<W: World>(world: &W, vhost: VhostId, dead: DeadLetter) -> Move {
        let route = route_of(world, vhost, &dead);
        let record = route
            .as_ref()
            .and_then(|route| with_batch(vhost, &dead, route, |batch| moved_record(world, route, &batch)));
        Move { dead, route, record }
    }

    /// The record that holds the message in its old queue.
    pub(crate) fn record_ref(&self) -> Option<RecordRef> {
        self.dead.record_ref
    }

    /// Delivers the dead letter, recorded at `first`. Messages dropped from full queues are added
    /// to `dead`.
    pub(crate) fn send<W: World>(&self, world: &W, vhost: VhostId, first: Lsn, dead: &mut Vec<DeadLetter>) {
        world.count(self.dead.counter());
        let Some(route) = &self.route else {
            world.count(Counter::DeadLetterDropped);
            return;
        };
        observe(world, vhost, &self.dead);
        with_batch(vhost, &self.dead, route, |batch| {
            send_recorded(world, route, &Batch { first, ..batch }, dead);
        });
    }
}

impl DeadLetter {
    /// The counter for the reason of its death.
    fn counter(&self) -> Counter {
        let latest = self.deaths.iter().next();
        Counter::dead_lettered(latest.map_or(DeathReason::Rejected, |death| death.reason))
    }
}

fn observe<W: World>(world: &W, vhost: VhostId, letter: &DeadLetter) {
    if let Some(observer) = world.observer() {
        observer.dead_lettering(vhost, letter);
    }
}

/// The route of a dead letter, if its exchange exists and it has not died too often.
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
