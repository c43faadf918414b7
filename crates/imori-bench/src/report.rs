//! What a run found, as one value: printed for people, written as JSON for programs.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::cost::Cost;
use crate::latency::Latency;
use crate::ledger::Ledger;
use crate::limits::SHORT_RUN;
use crate::options::BrokerOptions;
use crate::process::cpus_allowed;

/// Version of the JSON.
const FORMAT: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Everything was sent and accounted for.
    Done,
    /// Nothing moved for ten seconds although something was due.
    Blocked,
}

/// What the broker spent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Broker {
    /// The processes that were named.
    pub pids: Vec<u32>,
    /// Processes at the end, descendants included.
    pub processes: u32,
    /// Threads at the end.
    pub threads: u64,
    /// CPUs it may run on.
    pub cpus_allowed: Option<String>,
    /// CPU-seconds within the measured time.
    pub cpu_s: f64,
    /// CPU-seconds for a million deliveries; an RPC is two.
    pub cpu_s_per_million_deliveries: Option<f64>,
    /// Operations for each CPU-second: requests of an RPC, deliveries otherwise.
    pub per_cpu_s: Option<f64>,
    /// Resident bytes when measuring began.
    pub rss_start: u64,
    /// Highest resident bytes seen.
    pub rss_peak: u64,
    /// Resident bytes when measuring ended.
    pub rss_end: u64,
}

/// What the client spent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Client {
    /// Load threads.
    pub threads: u32,
    /// CPUs it may run on.
    pub cpus_allowed: Option<String>,
    /// CPU-seconds within the measured time.
    pub cpu_s: f64,
    /// Microseconds of CPU for each operation, both sides of the client together.
    pub cpu_us_per_op: Option<f64>,
    /// Resident bytes when measuring ended.
    pub rss_end: u64,
}

/// A named number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Count {
    /// What is counted.
    pub name: &'static str,
    /// How many.
    pub value: u64,
}

/// The result of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of this format.
    pub format: u32,
    /// Version of this tool.
    pub tool: &'static str,
    /// `rpc`, `queue`, `pubsub` or `idle`.
    pub scenario: &'static str,
    /// How load was made: `CLOSED lock-step`, `CLOSED pipelined x64`, and so on.
    pub mode: String,
    /// Calls in flight for each requester, for an RPC.
    pub depth: Option<String>,
    /// The broker, without the password.
    pub url: String,
    /// Name and version as the broker gives them.
    pub server: String,
    /// What was asked of the broker.
    pub asked: Map<String, Value>,
    /// How it ended.
    pub outcome: Outcome,
    /// Measured seconds.
    pub seconds: f64,
    /// What an operation is: `requests`, `deliveries` or `connections`.
    pub unit: &'static str,
    /// Operations within the measured time.
    pub operations: u64,
    /// Operations a second.
    pub per_second: f64,
    /// Messages that the broker delivered within the measured time.
    pub deliveries: u64,
    /// Deliveries a second.
    pub deliveries_per_second: f64,
    /// How long operations took.
    pub latency: Option<Latency>,
    /// What the broker spent; absent without `--pid`.
    pub broker: Option<Broker>,
    /// What the client spent.
    pub client: Client,
    /// What became of everything.
    pub ledger: Ledger,
    /// Counters of both sides, warm-up included.
    pub counters: Vec<Count>,
    /// What a reader must know before using the numbers.
    pub notes: Vec<String>,
}

/// What a scenario knows of itself before it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) scenario: &'static str,
    pub(crate) mode: String,
    pub(crate) depth: Option<String>,
    pub(crate) server: String,
    pub(crate) asked: Map<String, Value>,
    pub(crate) unit: &'static str,
    /// Load threads.
    pub(crate) threads: u32,
}

impl Report {
    /// A report of what was measured; ledger, latency and counters are filled in by the scenario.
    pub(crate) fn new(
        subject: Subject,
        options: &BrokerOptions,
        cost: &Cost,
        operations: u64,
        deliveries: u64,
    ) -> Report {
        let seconds = cost.elapsed.as_secs_f64();
        let client_cpu_s = cost.client_after.cpu_seconds_since(&cost.client_before);
        let broker = (!options.pid.is_empty()).then(|| {
            let cpu_s = cost.broker_after.cpu_seconds_since(&cost.broker_before);
            Broker {
                pids: options.pid.clone(),
                processes: cost.broker_after.processes,
                threads: cost.broker_after.threads,
                cpus_allowed: options.pid.first().and_then(|pid| cpus_allowed(*pid)),
                cpu_s,
                cpu_s_per_million_deliveries: ratio(cpu_s * 1e6, deliveries as f64),
                per_cpu_s: ratio(operations as f64, cpu_s),
                rss_start: cost.broker_before.rss_bytes,
                rss_peak: cost.broker_rss_peak,
                rss_end: cost.broker_after.rss_bytes,
            }
        });
        let mut notes = Vec::new();
        if cost.elapsed < SHORT_RUN {
            notes.push(format!("measured for {seconds:.1} s only; publish nothing below 10 s"));
        }
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        if client_cpu_s > 0.9 * seconds * f64::from(subject.threads.min(cpus)) {
            notes.push("the client was at its own ceiling; throughput is not the broker's".to_owned());
        }
        Report {
            format: FORMAT,
            tool: env!("CARGO_PKG_VERSION"),
            scenario: subject.scenario,
            mode: subject.mode,
            depth: subject.depth,
            url: options.url.to_string(),
            server: subject.server,
            asked: subject.asked,
            outcome: Outcome::Done,
            seconds,
            unit: subject.unit,
            operations,
            per_second: ratio(operations as f64, seconds).unwrap_or(0.0),
            deliveries,
            deliveries_per_second: ratio(deliveries as f64, seconds).unwrap_or(0.0),
            latency: None,
            broker,
            client: Client {
                threads: subject.threads,
                cpus_allowed: cpus_allowed(std::process::id()),
                cpu_s: client_cpu_s,
                cpu_us_per_op: ratio(client_cpu_s * 1e6, operations as f64),
                rss_end: cost.client_after.rss_bytes,
            },
            ledger: Ledger::default(),
            counters: Vec::new(),
            notes,
        }
    }

    /// Exit code of the command: 0 done, 3 ledger broken, 4 invalid.
    pub fn exit_code(&self) -> u8 {
        match self.outcome {
            _ if self.ledger.is_broken() => 3,
            Outcome::Blocked => 4,
            Outcome::Done => 0,
        }
    }
}

/// What was asked of the broker, as JSON.
pub(crate) fn asked<const N: usize>(options: [(&str, Value); N]) -> Map<String, Value> {
    options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
