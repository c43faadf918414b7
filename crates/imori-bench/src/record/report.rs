//! The report of one run: printed for people, written as JSON for programs.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::limits::MISSED;
use crate::record::heat::HeatColumns;
use crate::record::latency::Latency;
use crate::record::ledger::Ledger;
use crate::record::levels::Levels;
use crate::record::machine::Machine;
use crate::record::series::{Second, Stalls};

/// Version of the JSON format.
pub(crate) const FORMAT: u32 = 1;

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was sent and accounted for.
    Done,
    /// Nothing moved for ten seconds although something was due.
    Blocked,
    /// The broker closed the connection; the measurements until then are kept.
    Broken,
    /// Stopped by hand; the measurements until then are kept.
    Stopped,
}

/// Resources used by the broker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Broker {
    /// The processes that were named or found.
    pub pids: Vec<u32>,
    /// Processes at the end, descendants included.
    pub processes: u32,
    /// Threads at the end.
    pub threads: u64,
    /// CPUs that the broker may run on.
    pub cpus_allowed: Option<String>,
    /// Context switches of its threads within the measured time.
    #[serde(default)]
    pub context_switches: u64,
    /// Bytes read from disks.
    #[serde(default)]
    pub read_bytes: u64,
    /// Bytes written to disks.
    #[serde(default)]
    pub write_bytes: u64,
    /// CPU-seconds within the measured time.
    pub cpu_s: f64,
    /// CPU-seconds per million deliveries; an RPC is two deliveries.
    pub cpu_s_per_million_deliveries: Option<f64>,
    /// Operations per CPU-second: requests of an RPC, deliveries otherwise.
    pub per_cpu_s: Option<f64>,
    /// Resident bytes when measuring began.
    pub rss_start: u64,
    /// Highest resident bytes seen.
    pub rss_peak: u64,
    /// Resident bytes when measuring ended.
    pub rss_end: u64,
}

/// Resources used by the load tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Client {
    /// Load threads.
    pub threads: u32,
    /// CPUs that the tool may run on.
    pub cpus_allowed: Option<String>,
    /// CPU-seconds within the measured time.
    pub cpu_s: f64,
    /// Microseconds of CPU per operation, both sides of the client together.
    pub cpu_us_per_op: Option<f64>,
    /// Resident bytes when measuring ended.
    pub rss_end: u64,
}

/// The schedule of an open loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Operations a second, all connections together.
    pub rate: f64,
    /// Distribution over time: `poisson`, `fixed` or `burst:N`.
    pub arrival: String,
}

/// An objective and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The objective, as written on the command line.
    pub objective: String,
    /// Whether the run kept it.
    pub is_kept: bool,
    /// The measured value.
    pub found: String,
}

/// One step of a search for the highest rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// Operations offered per second.
    pub rate: f64,
    /// Operations completed per second.
    pub done: f64,
    /// Whether all objectives were kept.
    pub is_kept: bool,
    /// 99 of 100 responses took at most this.
    pub p99_us: Option<f64>,
    /// The objectives that were missed, in words.
    pub broken: Vec<String>,
}

/// A named number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedCount {
    /// The name of the counter.
    pub name: Cow<'static, str>,
    /// Value of the counter.
    pub value: u64,
}

impl NamedCount {
    /// Creates a count with a static name.
    pub(crate) fn new(name: &'static str, value: u64) -> NamedCount {
        NamedCount { name: Cow::Borrowed(name), value }
    }
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// Version of this tool.
    pub tool: Cow<'static, str>,
    /// `rpc`, `queue`, `pubsub`, `fan-out`, `soak` or `idle`.
    pub scenario: Cow<'static, str>,
    /// The kind of load: `CLOSED lock-step`, `CLOSED pipelined x64`, and so on.
    pub mode: String,
    /// Calls in flight for each requester, for an RPC.
    pub depth: Option<String>,
    /// The command line of the run, word by word, without passwords.
    #[serde(default)]
    pub command: Vec<String>,
    /// The seed of arrival times, sizes and bodies.
    #[serde(default)]
    pub seed: u64,
    /// When measuring began, in seconds since 1970; the times of rows and stalls are relative to it.
    #[serde(default)]
    pub started_at: f64,
    /// The machine that the load ran on.
    #[serde(default)]
    pub machine: Machine,
    /// The schedule; absent in a closed loop.
    #[serde(default)]
    pub open: Option<OpenLoop>,
    /// URL of the broker, without the password.
    pub url: String,
    /// Name and version reported by the broker.
    pub server: String,
    /// The options of the run.
    pub asked: Map<String, Value>,
    /// The outcome of the run.
    pub outcome: Outcome,
    /// Measured seconds.
    pub seconds: f64,
    /// The unit of an operation: `requests`, `deliveries` or `connections`.
    pub unit: Cow<'static, str>,
    /// Operations within the measured time.
    pub operations: u64,
    /// Operations a second.
    pub per_second: f64,
    /// Messages that the broker delivered within the measured time.
    pub deliveries: u64,
    /// Deliveries per operation sent; 0 if unknown.
    #[serde(default)]
    pub fan_out: u64,
    /// Deliveries a second.
    pub deliveries_per_second: f64,
    /// Latency of the operations: the response time in an open loop, see its kind.
    pub latency: Option<Latency>,
    /// Completion minus actual send, in an open loop; the response time additionally has the wait
    /// before sending.
    #[serde(default)]
    pub service: Option<Latency>,
    /// Quantiles and the microseconds at them, enough to draw the curve of `latency`.
    #[serde(default)]
    pub curve: Vec<(f64, f64)>,
    /// The curve of `service`.
    #[serde(default)]
    pub service_curve: Vec<(f64, f64)>,
    /// Time from when a message was due until it was confirmed.
    #[serde(default)]
    pub confirm: Option<Latency>,
    /// Times until the first, the middle and the last subscriber had each message, in `fan-out`.
    #[serde(default)]
    pub spread: Vec<(String, Latency)>,
    /// The objectives, and whether the run kept them.
    #[serde(default)]
    pub objectives: Vec<Kept>,
    /// The rates that a search tried, in order.
    #[serde(default)]
    pub steps: Vec<RateStep>,
    /// One row per second.
    #[serde(default)]
    pub rows: Vec<Second>,
    /// Columns of the heat map, if they are narrower than a second; otherwise the rows have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heat: Option<HeatColumns>,
    /// Intervals in which operations that were due did not finish.
    #[serde(default)]
    pub stalls: Option<Stalls>,
    /// Resources used by the broker; absent if its processes are not known.
    pub broker: Option<Broker>,
    /// Resources used by the load tool.
    pub client: Client,
    /// The outcome of everything that was sent.
    pub ledger: Ledger,
    /// Requested and reported levels of safety; absent without confirms and durability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<Levels>,
    /// Time that the broker's disk took to write and sync 4 KiB, beside the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_sync: Option<Latency>,
    /// Counters of both sides, warm-up included.
    pub counters: Vec<NamedCount>,
    /// The reports of the parts of a mix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Report>,
    /// Notes that a reader needs before using the numbers.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether the broker broke a promise: its ledger is broken, or it confirmed at a lower level
    /// than requested.
    pub fn is_broken(&self) -> bool {
        self.ledger.is_broken() || self.levels.as_ref().is_some_and(|levels| levels.below() > 0)
    }

    /// Messages published a second in `fan-out`, where each of them is delivered several times.
    pub fn publishes_per_second(&self) -> Option<f64> {
        if self.scenario != "fan-out" || self.rows.is_empty() || self.seconds <= 0.0 {
            return None;
        }
        let within = self.rows.iter().filter(|row| f64::from(row.t) < self.seconds);
        Some(within.map(|row| row.sent).sum::<u64>() as f64 / self.seconds)
    }

    /// Exit code of the command: 0 done, 1 ended early, 3 ledger or level broken, 4 blocked, 5
    /// objective missed. 2 is taken by clap for a command line that it cannot read.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            Outcome::Broken | Outcome::Stopped => 1,
            _ if self.is_broken() => 3,
            Outcome::Blocked => 4,
            Outcome::Done if self.objectives.iter().any(|objective| !objective.is_kept) => MISSED,
            Outcome::Done => 0,
        }
    }
}
