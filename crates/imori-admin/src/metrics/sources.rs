//! Access to the values of the metrics.

use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use imori_core::activity::ConnectionActivity;
use imori_core::confirm::Level;
use imori_core::id::VhostId;
use imori_core::time::Time;
use imori_core::world::Counter;
use imori_server::broker::{Broker, KINDS, SumsByKind};

use super::rates::Rates;
use crate::http::rest_at;
use crate::lock::lock;

/// The broker as a source of metrics.
pub(crate) struct Metrics {
    pub(crate) broker: Broker,
    /// The broker's name in the form of a RabbitMQ node's.
    pub(crate) node: String,
    /// Disk space that is kept free, in bytes.
    pub(crate) disk_reserve_bytes: u64,
    /// The broker's start by its own clock.
    pub(crate) started: Time,
    /// The broker's start in seconds since 1970.
    pub(crate) started_s: f64,
    pub(crate) rates: Rates,
    /// The sums of connections last reported.
    pub(crate) told: Mutex<SumsByKind>,
}

/// Traffic of connections by kind.
pub(super) struct Traffic {
    /// All connections since the start.
    pub(super) ever: SumsByKind,
    /// The open ones.
    pub(super) open: SumsByKind,
    /// Open AMQP sessions.
    pub(super) channels: u64,
    /// Consumers and live subscriptions.
    pub(super) readers: [u64; KINDS],
}

impl Metrics {
    pub(crate) fn of(broker: &Broker) -> Metrics {
        Metrics {
            node: node_name(broker),
            disk_reserve_bytes: broker.settings().config().journal.reserve_bytes.as_usize() as u64,
            started: broker.now(),
            started_s: Metrics::now_s(),
            rates: Rates::default(),
            told: Mutex::default(),
            broker: broker.clone(),
        }
    }

    /// Takes a sample of the queues for their rates if the last one is old enough.
    pub(crate) fn refresh_rates(&self) {
        self.rates.refresh(&self.broker);
    }

    /// The vhosts with these names, or all, sorted by name.
    pub(super) fn vhosts(&self, names: &[String]) -> Vec<(String, VhostId)> {
        let table = self.broker.table();
        let named = table.vhosts().map(|(id, name)| (name.to_string(), id));
        let mut vhosts: Vec<_> = named.filter(|(name, _)| names.is_empty() || names.contains(name)).collect();
        vhosts.sort_unstable();
        vhosts
    }

    /// The current time in seconds since 1970.
    pub(crate) fn now_s() -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
    }

    pub(super) fn counted(&self, counter: Counter) -> f64 {
        self.broker.counted(counter) as f64
    }

    /// Confirms sent, by level.
    pub(crate) async fn confirmed(&self) -> [u64; Level::ALL.len()] {
        let mut sum = ConnectionActivity::default();
        self.traffic().await.ever.iter().for_each(|of_kind| sum.add(&of_kind.activity));
        sum.confirmed
    }

    /// Sums up the traffic of connections. A connection that closes meanwhile may be missed, but no sum falls below
    /// its last reported value, because that would look like a restart.
    pub(super) async fn traffic(&self) -> Traffic {
        let closed = self.broker.closed_traffic();
        let mut open = SumsByKind::default();
        let (mut channels, mut readers) = (0, [0; KINDS]);
        for (index, id) in self.broker.connection_ids().into_iter().enumerate() {
            let found = self.broker.with_connection(id, |connection| {
                let (sums, outbound) = (connection.sums()?, connection.outbound());
                Some((sums, outbound.open_sessions().count(), outbound.readers_len()))
            });
            if let Some(((kind, sums), sessions, of_connection)) = found.flatten() {
                open.get_mut(kind).into_iter().for_each(|of_kind| of_kind.add(&sums));
                readers.get_mut(kind).into_iter().for_each(|count| *count += of_connection as u64);
                channels += sessions as u64;
            }
            rest_at(index).await;
        }
        let mut told = lock(&self.told);
        raise(&mut told, closed, &open);
        Traffic { ever: *told, open, channels, readers }
    }
}

/// The broker's name in the form of a RabbitMQ node's.
pub(crate) fn node_name(broker: &Broker) -> String {
    format!("{}@localhost", broker.settings().config().nats.server_name)
}

/// Raises sums since the start to those of closed and open connections. They never fall, although a connection that
/// closes between the two readings is missed.
pub(crate) fn raise(highest: &mut SumsByKind, mut closed: SumsByKind, open: &SumsByKind) {
    closed.iter_mut().zip(open).for_each(|(sum, more)| sum.add(more));
    highest.iter_mut().zip(&closed).for_each(|(highest, sums)| highest.raise_to(sums));
}
