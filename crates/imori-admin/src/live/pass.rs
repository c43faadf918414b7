//! A pass over all connections and queues, which finds what no counter of the broker tells: messages by protocol,
//! messages that wait, and the rows of the lists.
//!
//! It locks one connection or queue at a time, for a few loads, and other requests run in between.

use std::collections::HashMap;
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use imori_core::id::{ConnectionId, QueueId};
use imori_server::broker::{Broker, Sums, SumsByKind, kind};
use imori_server::config::Spoken;
use tokio::task::yield_now;

use super::connection_rows::{ConnectionReading, ConnectionRows};
use super::counts::Traffic;
use super::live_state::{Live, Topic};
use super::queue_rows::{QueueReading, QueueRows};
use super::totals::{Clients, Totals};
use crate::limits::HTTP_ROWS_AT_ONCE;
use crate::lock::lock;
use crate::metrics::raise;

/// What each pass needs of the one before.
#[derive(Debug, Default)]
pub struct PassState {
    /// The highest sums of clients so far; a pass may miss a connection that is closing.
    ever: SumsByKind,
    /// Messages that each open one of the broker's own clients has published and received.
    internal: HashMap<ConnectionId, (u64, u64)>,
    /// Messages that these clients published and received in all.
    pub other: (u64, u64),
    queues_at: Option<Instant>,
    connections_at: Option<Instant>,
}

impl PassState {
    /// Passes over all connections.
    pub(super) async fn over_connections(
        &mut self,
        broker: &Broker,
        live: &Live,
        totals: &mut Totals,
    ) -> Traffic {
        let is_listed = live.is_followed(Topic::Connections);
        let time = between(&mut self.connections_at, is_listed);
        let closed = broker.closed_traffic();
        let mut found = Open::default();
        if is_listed {
            lock(&live.connections).begin();
        }
        for ids in broker.connection_ids().chunks(HTTP_ROWS_AT_ONCE) {
            let rows = is_listed.then(|| lock(&live.connections));
            pass_connections(ids, broker, (rows, time), totals, &mut found);
            yield_now().await;
        }
        if is_listed {
            lock(&live.connections).end();
        }
        raise(&mut self.ever, closed, &found.sums);
        self.count_internal(found.internal);
        self.traffic()
    }

    fn traffic(&self) -> Traffic {
        let of = |label: &str, count: fn(&Sums) -> u64| -> u64 {
            let spoken = Spoken::ALL.into_iter().filter(|spoken| spoken.label() == label);
            spoken.map(|spoken| self.ever.get(kind(Some(spoken))).map_or(0, count)).sum()
        };
        let all = |count: fn(&Sums) -> u64, other| {
            [of("stomp", count), of("nats", count), of("amqp091", count), of("amqp10", count), other]
        };
        let settled = |sums: &Sums| sums.activity.accepted + sums.activity.released + sums.activity.rejected;
        Traffic {
            at: Instant::now(),
            published: all(|sums| sums.messages_in, self.other.0),
            delivered: all(|sums| sums.messages_out, self.other.1),
            settled: self.ever.iter().map(settled).sum(),
        }
    }

    /// Counts what the broker's own clients did since the last pass.
    pub fn count_internal(&mut self, now: HashMap<ConnectionId, (u64, u64)>) {
        for (id, (published, delivered)) in &now {
            let (published_before, delivered_before) = self.internal.get(id).copied().unwrap_or_default();
            self.other.0 += published.saturating_sub(published_before);
            self.other.1 += delivered.saturating_sub(delivered_before);
        }
        self.internal = now;
    }

    /// Passes over all queues.
    pub(super) async fn over_queues(&mut self, broker: &Broker, live: &Live, totals: &mut Totals) {
        let is_listed = live.is_followed(Topic::Queues);
        let time = between(&mut self.queues_at, is_listed);
        if is_listed {
            lock(&live.queues).begin();
        }
        for ids in broker.queue_ids().chunks(HTTP_ROWS_AT_ONCE) {
            let rows = is_listed.then(|| lock(&live.queues));
            pass_queues(ids, broker, (rows, time), totals);
            yield_now().await;
        }
        if is_listed {
            lock(&live.queues).end();
        }
        totals.ready = totals.messages_by_vhost.values().map(|messages| messages.ready).sum();
        totals.unsettled = totals.messages_by_vhost.values().map(|messages| messages.unsettled).sum();
    }
}

/// What a pass finds of open connections.
#[derive(Debug, Default)]
struct Open {
    sums: SumsByKind,
    /// Messages that each of the broker's own clients has published and received.
    internal: HashMap<ConnectionId, (u64, u64)>,
}

/// Passes over some connections. `rows` is the list to fill, if any, and the time since it was filled.
fn pass_connections(
    ids: &[ConnectionId],
    broker: &Broker,
    (mut rows, time): (Option<MutexGuard<'_, ConnectionRows>>, Duration),
    totals: &mut Totals,
    found: &mut Open,
) {
    for id in ids {
        let read = broker.with_connection(*id, |connection| {
            let Some((kind, sums)) = connection.sums() else {
                found.internal.insert(*id, (connection.published(), connection.outbound().delivered()));
                return None;
            };
            found.sums.get_mut(kind).into_iter().for_each(|of_kind| of_kind.add(&sums));
            let reading = ConnectionReading::of(connection)?;
            totals.clients.add(&reading);
            count_for(&mut totals.clients_by_user, &connection.facts().user, &reading);
            Some(reading)
        });
        if let (Some(reading), Some(rows)) = (read.flatten(), &mut rows) {
            reading.meet(rows, *id, broker, time);
        }
    }
}

/// Passes over some queues, likewise.
fn pass_queues(
    ids: &[QueueId],
    broker: &Broker,
    (mut rows, time): (Option<MutexGuard<'_, QueueRows>>, Duration),
    totals: &mut Totals,
) {
    let now = broker.now();
    for id in ids {
        let found = match &mut rows {
            Some(rows) => broker.with_queue(*id, QueueReading::of).map(|reading| {
                reading.meet(rows, *id, broker, now, time);
                (reading.vhost, reading.ready, reading.unsettled)
            }),
            None => broker.with_queue(*id, |queue| (queue.vhost(), queue.ready_len(), queue.unsettled_len())),
        };
        if let Some((vhost, ready, unsettled)) = found {
            let of_vhost = totals.messages_by_vhost.entry(vhost).or_default();
            of_vhost.ready += ready as u64;
            of_vhost.unsettled += unsettled as u64;
        }
    }
}

/// Adds a connection to the sums of its user.
fn count_for(by_user: &mut HashMap<String, Clients>, user: &str, reading: &ConnectionReading) {
    match by_user.get_mut(user) {
        Some(clients) => clients.add(reading),
        None => by_user.entry(user.to_owned()).or_default().add(reading),
    }
}

/// The time since the pass before, which filled the same list; none if that was not listed.
pub fn between(last: &mut Option<Instant>, is_listed: bool) -> Duration {
    let now = Instant::now();
    let before = last.take();
    *last = is_listed.then_some(now);
    before.map_or(Duration::ZERO, |before| now.saturating_duration_since(before))
}
