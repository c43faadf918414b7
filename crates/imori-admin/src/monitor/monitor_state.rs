//! The broker as the monitor's subject, and the public part of its configuration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;

use imori_core::time::Time;
use imori_server::broker::Broker;

use crate::metrics::{CpuMeter, Metrics};

/// The broker as seen by the monitor.
pub(crate) struct MonitorState {
    pub(super) broker: Broker,
    pub(super) cores: usize,
    pub(super) started: Time,
    pub(super) cpu: CpuMeter,
    pub(super) requests: Requests,
    pub(super) metrics: Arc<Metrics>,
    pub(super) shown: Shown,
}

/// Number of requests by path.
#[derive(Debug, Default)]
pub struct Requests([AtomicU64; Path::ALL.len()]);

/// A counted path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The index of the other paths.
    Root,
    /// The broker.
    Varz,
    /// Connections.
    Connz,
    /// Subscriptions, by either of two paths.
    Subsz,
    /// Routes to other brokers.
    Routez,
    /// Readiness, as nats-server words it.
    Healthz,
    /// Whether a restart would help.
    Livez,
    /// Readiness.
    Readyz,
    /// The store.
    Storez,
    /// Metrics for Prometheus, by either of two paths.
    Metrics,
    /// Streams.
    Jsz,
}

impl Path {
    pub(crate) const ALL: [Path; 11] = [
        Path::Root,
        Path::Varz,
        Path::Connz,
        Path::Subsz,
        Path::Routez,
        Path::Healthz,
        Path::Livez,
        Path::Readyz,
        Path::Storez,
        Path::Metrics,
        Path::Jsz,
    ];

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Path::Root => "/",
            Path::Varz => "/varz",
            Path::Connz => "/connz",
            Path::Subsz => "/subsz",
            Path::Routez => "/routez",
            Path::Healthz => "/healthz",
            Path::Livez => "/livez",
            Path::Readyz => "/readyz",
            Path::Storez => "/storez",
            Path::Metrics => "/metrics",
            Path::Jsz => "/jsz",
        }
    }
}

impl Requests {
    /// Counts a request.
    pub fn count(&self, path: Path) {
        if let Some(counter) = self.0.get(path as usize) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Requested paths, with the number of requests.
    pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = Path::ALL.into_iter().zip(&self.0);
        counters.map(|(path, counter)| (path.text(), counter.load(Ordering::Relaxed))).filter(|(_, n)| *n > 0)
    }
}

/// Last reported sums. A connection that closes while they are taken is missed, but a reported value must not fall,
/// because dashboards would take that for a restart.
#[derive(Debug, Default)]
pub struct Shown([AtomicU64; 3]);

impl Shown {
    /// Returns the larger of each sum and its last reported value.
    pub fn rise(&self, sums: [u64; 3]) -> [u64; 3] {
        let mut shown = sums;
        for (sum, last) in shown.iter_mut().zip(&self.0) {
            *sum = last.fetch_max(*sum, Ordering::Relaxed).max(*sum);
        }
        shown
    }
}

impl MonitorState {
    pub(crate) fn new(broker: &Broker, metrics: Arc<Metrics>) -> MonitorState {
        MonitorState {
            broker: broker.clone(),
            cores: available_parallelism().map_or(1, usize::from),
            started: broker.now(),
            cpu: CpuMeter::start(),
            requests: Requests::default(),
            metrics,
            shown: Shown::default(),
        }
    }
}
