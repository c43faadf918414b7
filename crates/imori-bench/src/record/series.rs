//! The seconds of a run, and its stalls.

use serde::{Deserialize, Serialize};

/// One second of the measured time; what was not measured is absent.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Seconds since measuring began, at its start.
    pub t: u32,
    /// Operations that the schedule had for it; in a closed loop those sent.
    pub offered: u64,
    /// Operations begun.
    pub sent: u64,
    /// Messages that the broker confirmed.
    pub confirmed: u64,
    /// Messages delivered, or replies that came.
    pub delivered: u64,
    /// Operations under way at its end.
    pub in_flight: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// Median response time of what ended in it, in microseconds, as are those below.
    pub p50_us: Option<f64>,
    /// 99 of 100 took at most this.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took at most this.
    pub p999_us: Option<f64>,
    /// The longest response.
    pub max_us: Option<f64>,
    /// How late an operation was begun at most, against its schedule.
    pub send_lag_max_us: Option<f64>,
    /// CPU-seconds of this process.
    pub client_cpu_s: f64,
    /// The broker's expense; absent without `--pid`.
    pub broker: Option<BrokerSecond>,
    /// The state of the machine and the canaries.
    pub host: Option<HostSecond>,
    /// How many responses fell into each class of [`HEAT_BOUNDS_US`], the last being above all.
    pub heat: Vec<u32>,
}

/// Upper bounds of the classes of response times in microseconds, five a decade.
pub const HEAT_BOUNDS_US: [f64; 36] = [
    1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 16.0, 25.0, 40.0, 63.0, 100.0, 160.0, 250.0, 400.0, 630.0, 1e3, 1.6e3,
    2.5e3, 4e3, 6.3e3, 1e4, 1.6e4, 2.5e4, 4e4, 6.3e4, 1e5, 1.6e5, 2.5e5, 4e5, 6.3e5, 1e6, 1.6e6, 2.5e6, 4e6,
    6.3e6, 1e7,
];

/// The expense of the broker's processes in a second.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerSecond {
    /// CPU-seconds.
    pub cpu_s: f64,
    /// Resident bytes at its end.
    pub rss_bytes: u64,
    /// Times that a thread gave up or lost its CPU.
    pub context_switches: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes written to disks.
    pub write_bytes: u64,
}

/// The state of the machine and the canaries in a second.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSecond {
    /// Share of the time in which somebody waited for a CPU, 0 to 1, as the kernel's pressure says.
    pub psi_cpu: Option<f64>,
    /// Pressure on disks, in the same unit.
    pub psi_io: Option<f64>,
    /// Pressure on memory, in the same unit.
    pub psi_memory: Option<f64>,
    /// Share of the CPU time that the hypervisor took, 0 to 1.
    pub steal: Option<f64>,
    /// Threads that could run, at its end.
    pub running: Option<u32>,
    /// How late the canary in this process was at most, in microseconds.
    pub client_canary_max_us: Option<f64>,
    /// How late the canaries on the broker's CPUs were at most.
    pub cpu_canary_max_us: Option<f64>,
    /// How long a small write and its sync took at most.
    pub disk_canary_max_us: Option<f64>,
    /// How long the echo of a byte took at most.
    pub network_canary_max_us: Option<f64>,
}

/// Whose fault a stall is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// This program did not get to run, or had too much to do.
    Client,
    /// The machine had no CPU to give.
    HostCpu,
    /// The broker's disk did not answer.
    Disk,
    /// Nothing came through the network.
    Network,
    /// Everything around the broker was well.
    Broker,
    /// The evidence is missing, or contradicts itself.
    Unknown,
}

/// A stretch in which operations that were due did not end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Seconds since measuring began.
    pub start_s: f64,
    /// How long it lasted, in seconds.
    pub length_s: f64,
    /// Operations that waited in it.
    pub operations: u64,
    /// The longest response of these, in microseconds.
    pub worst_us: f64,
    /// All their delays together, in seconds.
    pub delay_s: f64,
    /// Whose fault it is.
    pub verdict: Verdict,
    /// The evidence of the verdict, in words.
    pub evidence: String,
}

/// Stalls that come again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Seconds from one to the next.
    pub period_s: f64,
    /// Seconds since measuring began at which the first is due.
    pub phase_s: f64,
    /// How sure that is, 0 to 1.
    pub confidence: f64,
    /// How many cycles were seen.
    pub cycles: u32,
    /// The part of the broker or machine that is known to have this period.
    pub suspect: Option<String>,
}

/// All stalls of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stalls {
    /// Delays shorter than this, in microseconds, are not stalls.
    pub threshold_us: f64,
    /// By start.
    pub list: Vec<Stall>,
    /// Stalls that were not kept because there were too many.
    pub unlisted: u64,
    /// Stalls an hour, by verdict.
    pub per_hour: Vec<(Verdict, f64)>,
    /// The longest, in seconds.
    pub longest_s: f64,
    /// Share of the operations whose response came within 50 ms, 0 to 1.
    pub available_at_50_ms: Option<f64>,
    /// The cycle in which they come back; absent with fewer than six cycles or without any.
    pub period: Option<Period>,
    /// Why no period is told.
    pub no_period: Option<String>,
}
