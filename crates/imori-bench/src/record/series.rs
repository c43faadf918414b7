//! One row of measurements per second of a run, and the stalls of the run.

use serde::{Deserialize, Serialize};

/// One second of the measured time; a value that was not measured is absent.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Second {
    /// Start of this second, in seconds since measuring began.
    pub t: u32,
    /// Operations scheduled in it; in a closed loop, operations sent.
    pub offered: u64,
    /// Operations sent.
    pub sent: u64,
    /// Messages that the broker confirmed.
    pub confirmed: u64,
    /// Messages delivered, or replies received.
    pub delivered: u64,
    /// Operations in flight at its end.
    pub in_flight: u64,
    /// Connections re-opened.
    pub reconnects: u64,
    /// Median response time of the operations that finished in it, in microseconds, like the values below.
    pub p50_us: Option<f64>,
    /// 99 of 100 took at most this.
    pub p99_us: Option<f64>,
    /// 999 of 1000 took at most this.
    pub p999_us: Option<f64>,
    /// The longest response.
    pub max_us: Option<f64>,
    /// The greatest delay of a send behind its schedule.
    pub send_lag_max_us: Option<f64>,
    /// CPU-seconds of this process.
    pub client_cpu_s: f64,
    /// Resources used by the broker; absent if its processes are not known.
    pub broker: Option<BrokerSecond>,
    /// State of the machine, and the canaries.
    pub host: Option<HostSecond>,
    /// Number of responses in each class of [`HEAT_BOUNDS_US`]; the last class is above all bounds.
    pub heat: Vec<u32>,
}

/// Upper bounds of the classes of response times in microseconds, five per decade.
pub const HEAT_BOUNDS_US: [f64; 36] = [
    1.0, 1.6, 2.5, 4.0, 6.3, 10.0, 16.0, 25.0, 40.0, 63.0, 100.0, 160.0, 250.0, 400.0, 630.0, 1e3, 1.6e3,
    2.5e3, 4e3, 6.3e3, 1e4, 1.6e4, 2.5e4, 4e4, 6.3e4, 1e5, 1.6e5, 2.5e5, 4e5, 6.3e5, 1e6, 1.6e6, 2.5e6, 4e6,
    6.3e6, 1e7,
];

/// Index of the class of a response time in nanoseconds.
pub(crate) fn heat_class(nanos: u64) -> usize {
    HEAT_BOUNDS_US.partition_point(|bound| bound * 1_000.0 < nanos as f64)
}

/// Resources used by the broker's processes in one second.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BrokerSecond {
    /// CPU-seconds.
    pub cpu_s: f64,
    /// Resident bytes at its end.
    pub rss_bytes: u64,
    /// Context switches of its threads.
    pub context_switches: u64,
    /// Bytes read from disks.
    pub read_bytes: u64,
    /// Bytes written to disks.
    pub write_bytes: u64,
}

/// State of the machine and the canaries in one second.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostSecond {
    /// Share of the time in which some task waited for a CPU, 0 to 1, from the kernel's pressure
    /// stall information.
    pub psi_cpu: Option<f64>,
    /// The same for block I/O.
    pub psi_io: Option<f64>,
    /// The same for memory.
    pub psi_memory: Option<f64>,
    /// Share of the CPU time that the hypervisor took, 0 to 1.
    pub steal: Option<f64>,
    /// Runnable threads at its end.
    pub running: Option<u32>,
    /// The greatest lateness of the canary in this process, in microseconds.
    pub client_canary_max_us: Option<f64>,
    /// The greatest lateness of the canaries on the broker's CPUs.
    pub cpu_canary_max_us: Option<f64>,
    /// The longest time that a small write and its sync took.
    pub disk_canary_max_us: Option<f64>,
    /// The longest round trip of a byte to the echo service.
    pub network_canary_max_us: Option<f64>,
}

/// The cause of a stall.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// This program did not get to run, or was overloaded.
    Client,
    /// The machine had no free CPU.
    HostCpu,
    /// The broker's disk did not respond.
    Disk,
    /// No traffic got through the network.
    Network,
    /// Everything except the broker was healthy.
    Broker,
    /// The evidence is missing, or contradicts itself.
    Unknown,
}

/// An interval in which operations that were due did not finish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Start, in seconds since measuring began.
    pub start_s: f64,
    /// Length in seconds.
    pub length_s: f64,
    /// Operations that waited during the stall.
    pub operations: u64,
    /// The longest response time among them, in microseconds.
    pub worst_us: f64,
    /// Sum of their delays, in seconds.
    pub delay_s: f64,
    /// The cause.
    pub verdict: Verdict,
    /// The evidence for the cause, in words.
    pub evidence: String,
}

/// A cycle in which stalls recur.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// Seconds between two stalls.
    pub period_s: f64,
    /// Time of the first cycle, in seconds since measuring began.
    pub phase_s: f64,
    /// Confidence, 0 to 1.
    pub confidence: f64,
    /// Number of cycles observed.
    pub cycles: u32,
    /// A component of the broker or the machine that is known to work with this period.
    pub suspect: Option<String>,
}

/// All stalls of a run.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stalls {
    /// The shortest delay that counts as a stall, in microseconds.
    pub threshold_us: f64,
    /// The stalls, ordered by start.
    pub list: Vec<Stall>,
    /// Stalls left out of the list because there were too many.
    pub unlisted: u64,
    /// Stalls per hour, by cause.
    pub per_hour: Vec<(Verdict, f64)>,
    /// The longest stall, in seconds.
    pub longest_s: f64,
    /// Share of the operations that were answered within 50 ms, 0 to 1.
    pub available_at_50_ms: Option<f64>,
    /// The cycle in which the stalls recur; absent with fewer than six cycles or without any.
    pub period: Option<Period>,
    /// The reason why no period is given.
    pub no_period: Option<String>,
}
