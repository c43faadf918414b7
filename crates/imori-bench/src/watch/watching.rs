//! Watches machine, broker and client during a run, and judges the stalls afterwards.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::clock::Clock;
use crate::probe::canary::{Canary, CanaryKind, Late};
use crate::probe::echo::{self, Mirror};
use crate::probe::{beat, disk};
use crate::record::latency::{Latency, LatencyKind};
use crate::record::series::{BrokerSecond, HostSecond, Stalls};
use crate::watch::cost::{Cost, Measure};
use crate::watch::evidence::{Evidence, around, broker_second, host_second};
use crate::watch::findings::Setting;
use crate::watch::place::{cpus_of, folder_beside, is_here, resolve};
use crate::watch::port::listeners;
use crate::watch::sampler::{self, Samples};
use crate::watch::stalls::{Operations, judge};

/// Time for the watching threads to end; a thread that hangs on a disk is abandoned.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

const SECOND_NANOS: u64 = 1_000_000_000;

/// The processes, folders and addresses to watch.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// The broker's processes; if empty and the broker runs here, they are found by its port.
    pub pids: Vec<u32>,
    /// The broker's host, as in the URL.
    pub host: String,
    /// The broker's port.
    pub port: u16,
    /// Folder for the disk canary; by default one on the broker's file system.
    pub disk_canary: Option<PathBuf>,
    /// A TCP echo service on the broker's host; without one, see [`echo`].
    pub echo: Option<SocketAddr>,
    /// Number of load threads.
    pub load_threads: u32,
}

/// The running canaries and the sampler.
pub struct Watch {
    clock: Clock,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    canaries: Vec<Arc<Canary>>,
    samples: Samples,
    pids: Vec<u32>,
    setting: Setting,
    disk_folder: Option<PathBuf>,
}

impl Watch {
    /// Starts watching; anything that cannot be observed is mentioned in the verdicts and is not an error.
    pub fn start(clock: Clock, options: &WatchOptions) -> Result<Watch> {
        let address = resolve(&options.host, options.port)?;
        let is_address_here = is_here(address);
        let pids = match options.pids.as_slice() {
            [] if is_address_here => listeners(options.port),
            named => named.to_vec(),
        };
        let is_here = is_address_here || !pids.is_empty();
        let own_cpus = cpus_of(std::process::id());
        let broker_cpus = match pids.first() {
            Some(pid) => cpus_of(*pid),
            None if is_here => own_cpus.clone(),
            None => Vec::new(),
        };
        let disk_folder = options.disk_canary.clone().or_else(|| is_here.then(|| folder_beside(&pids)));
        let mut watch = Watch {
            clock,
            is_over: Arc::default(),
            threads: Vec::new(),
            canaries: Vec::new(),
            samples: Samples::default(),
            pids,
            setting: Setting {
                load_threads: options.load_threads,
                own_cpus: own_cpus.len() as u32,
                broker_cpus: broker_cpus.len() as u32,
                is_here,
                is_shared: own_cpus.iter().any(|cpu| broker_cpus.contains(cpu)),
            },
            disk_folder,
        };
        watch.start_threads(&broker_cpus, options.echo.map_or(Mirror::Host(address), Mirror::Service))?;
        Ok(watch)
    }

    fn start_threads(&mut self, broker_cpus: &[usize], mirror: Mirror) -> Result<()> {
        let sampler =
            sampler::start(Arc::clone(&self.samples), &self.pids, self.clock, Arc::clone(&self.is_over))?;
        self.threads.push(sampler);
        let beats = broker_cpus.iter().map(|cpu| CanaryKind::Cpu(*cpu));
        for kind in [CanaryKind::Client].into_iter().chain(beats) {
            let beat = beat::start(self.canary(kind), self.clock, Arc::clone(&self.is_over))?;
            self.threads.push(beat);
        }
        if let Some(folder) = self.disk_folder.clone() {
            let disk = self.canary(CanaryKind::Disk);
            self.threads.push(disk::start(disk, &folder, self.clock, Arc::clone(&self.is_over))?);
        }
        let network = self.canary(CanaryKind::Network);
        self.threads.push(echo::start(network, mirror, self.clock, Arc::clone(&self.is_over))?);
        Ok(())
    }

    fn canary(&mut self, kind: CanaryKind) -> Arc<Canary> {
        let canary = Arc::new(Canary::new(kind));
        self.canaries.push(Arc::clone(&canary));
        canary
    }

    /// The broker's processes, given in the options or found by port, without their descendants.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// The folder in which the disk canary writes, if there is one.
    pub fn disk_folder(&self) -> Option<&Path> {
        self.disk_folder.as_deref()
    }

    /// Measurements of broker and machine in the last second.
    pub fn live(&self) -> (Option<BrokerSecond>, HostSecond) {
        let now = self.clock.now();
        let begin = now.saturating_sub(SECOND_NANOS);
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let between = around(&samples, begin, now);
        let worst = |is_kind: fn(CanaryKind) -> bool| {
            let of_kind = self.canaries.iter().filter(|canary| is_kind(canary.kind));
            of_kind.filter_map(|canary| canary.record().worst_us(begin, now)).reduce(f64::max)
        };
        (between.and_then(broker_second), host_second(between, worst))
    }

    /// Starts measuring the cost of a phase.
    pub(crate) fn measure(&self) -> Result<Measure> {
        Measure::start(&self.pids, self.clock.now())
    }

    /// Ends the measurement.
    pub(crate) fn measured(&self, measure: Measure) -> Result<Cost> {
        let rss_seen = {
            let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            let since = samples.partition_point(|sample| sample.at < measure.at);
            let rss = samples.iter().skip(since).filter_map(|sample| Some(sample.broker?.rss_bytes));
            rss.max().unwrap_or(0)
        };
        measure.stop(&self.pids, rss_seen)
    }

    /// Ends all threads and returns their observations.
    pub fn stop(mut self) -> Watched {
        self.is_over.store(true, Ordering::Relaxed);
        let patience = Instant::now();
        while self.threads.iter().any(|thread| !thread.is_finished()) && patience.elapsed() < STOP_PATIENCE {
            sleep(Duration::from_millis(2));
        }
        let now = self.clock.now();
        let canaries = self.canaries.drain(..).map(|canary| {
            let asked = canary.record().asked;
            if let Some(begin) = asked {
                // The canary still waits, so it is late at least until now.
                canary.waited(Late::new(begin, now), true);
            }
            (canary.kind, std::mem::take(&mut *canary.record()))
        });
        let evidence = Evidence {
            canaries: canaries.collect(),
            samples: std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner)),
        };
        Watched { evidence, setting: self.setting }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The observations of a finished run.
#[derive(Debug)]
pub struct Watched {
    evidence: Evidence,
    setting: Setting,
}

impl Watched {
    /// Measurements of broker, machine and client in second `number` after `from`, the nanosecond at which measuring
    /// began.
    pub fn second(&self, number: u32, from: u64) -> (Option<BrokerSecond>, HostSecond, f64) {
        let begin = from.saturating_add(u64::from(number) * SECOND_NANOS);
        let end = begin.saturating_add(SECOND_NANOS);
        let between = self.evidence.around(begin, end);
        let host = host_second(between, |is_kind| self.evidence.waited(is_kind, begin, end).worst_us);
        let client_nanos =
            between.map_or(0, |(first, last)| last.client.cpu_nanos.saturating_sub(first.client.cpu_nanos));
        (between.and_then(broker_second), host, client_nanos as f64 / 1e9)
    }

    /// The stalls among these operations, with their causes.
    pub(crate) fn judge(&self, operations: &Operations<'_>) -> Stalls {
        judge(operations, &self.evidence, &self.setting)
    }

    /// Latency of the disk canary's writes and syncs within the interval; `None` if there were none.
    pub fn disk_sync(&self, begin: u64, end: u64) -> Option<Latency> {
        let syncs = self.evidence.disk_syncs(begin, end);
        (syncs.samples() > 0).then(|| syncs.summary(LatencyKind::Service))
    }

    /// Reasons why something could not be observed, for the notes of a report.
    pub fn failures(&self) -> Vec<String> {
        self.evidence.failures().map(|(_, why)| why.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests;
