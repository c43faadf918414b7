//! Runs a scenario while the watch observes broker and machine, and completes its report.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;

use crate::clock::Clock;
use crate::options::{BrokerOptions, LoadOptions};
use crate::record::Timeline;
use crate::record::report::Report;
use crate::record::series::{Second, Stalls};
use crate::report::live::Live;
use crate::scenario::stage::Stage;
use crate::scenario::summary::Ran;
use crate::url::Url;
use crate::watch::facts::machine_facts;
use crate::watch::stalls::Operations;
use crate::watch::watching::{Watch, WatchOptions, Watched};

/// The response time within which an operation counts as available, in nanoseconds.
const AVAILABLE_NANOS: u64 = 50_000_000;

/// Seconds from which the slope of memory is meaningful; before that, allocators and caches still fill.
const SLOPE_SECONDS_MIN: usize = 600;

/// A scenario that can be measured, with its options.
pub(crate) trait Measurable: Clone {
    /// The broker options.
    fn broker(&mut self) -> &mut BrokerOptions;

    /// The load options.
    fn load(&mut self) -> &mut LoadOptions;

    /// Refuses combinations of options that cannot be run.
    fn check(&self) -> Result<()>;

    /// Runs the scenario.
    fn run(&self, stage: &Stage<'_>) -> Result<Ran>;
}

/// The processes and canaries to watch, from the command line.
pub(super) fn watch_options(broker: &BrokerOptions) -> WatchOptions {
    WatchOptions {
        pids: broker.pid.clone(),
        host: broker.url.host.clone(),
        port: broker.url.port,
        disk_canary: broker.disk_canary.clone(),
        echo: broker.echo,
        load_threads: broker.threads.into(),
    }
}

/// Runs a scenario once while watching broker and machine.
pub(super) fn once<M: Measurable>(options: &M) -> Result<Report> {
    let broker = options.clone().broker().clone();
    let clock = Clock::start();
    let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let watch = Watch::start(clock, &watch_options(&broker))?;
    let live = Live::new(broker.progress);
    let ran = options.run(&Stage::new(clock, &watch, &live));
    live.clear();
    let folder = watch.disk_folder().map(Path::to_owned);
    let watched = watch.stop();
    let Ran { mut report, timeline } = ran?;
    let begin = timeline.begin();
    report.started_at = started.as_secs_f64() + begin as f64 / 1e9;
    report.machine = machine_facts(&folder.unwrap_or_else(std::env::temp_dir));
    report.command = command();
    for row in &mut report.rows {
        let (broker, host, client_cpu_s) = watched.second(row.t, begin);
        (row.broker, row.host, row.client_cpu_s) = (broker, Some(host), client_cpu_s);
    }
    report.notes.extend(watched.failures());
    report.notes.extend(memory_slope(&report.rows));
    report.disk_sync = watched.disk_sync(begin, begin.saturating_add((report.seconds * 1e9) as u64));
    report.stalls = Some(judged(&watched, &report, &timeline));
    Ok(report)
}

/// The stalls of a run, with their causes.
fn judged(watched: &Watched, report: &Report, timeline: &Timeline) -> Stalls {
    let times = timeline.total();
    let within = times.share_within(AVAILABLE_NANOS).unwrap_or(0.0) * times.samples() as f64;
    let p50_us: Vec<_> = report.rows.iter().map(|row| row.p50_us).collect();
    watched.judge(&Operations {
        slow: &timeline.slow,
        p50_us: &p50_us,
        from: timeline.begin(),
        until: timeline.begin().saturating_add((report.seconds * 1e9) as u64),
        total: times.samples() + report.ledger.lost + report.ledger.unknown,
        within_50_ms: within.round() as u64,
        server: &report.server,
    })
}

/// The words of the command line, with passwords removed from URLs.
fn command() -> Vec<String> {
    let shown = |word: String| {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (format!("{option}="), value.to_owned()),
            _ => (String::new(), word.clone()),
        };
        match value.parse::<Url>() {
            Ok(url) => format!("{option}{url}"),
            Err(_) => word,
        }
    };
    let mut words: Vec<String> = std::env::args().map(shown).collect();
    // The directory of the program is of no use to readers.
    if let Some(program) = words.first_mut()
        && let Some(name) = Path::new(program.as_str()).file_name()
    {
        *program = name.to_string_lossy().into_owned();
    }
    words
}

/// A note about the growth of the broker's memory, if the run is long enough.
fn memory_slope(rows: &[Second]) -> Option<String> {
    let points: Vec<(f64, f64)> = rows
        .iter()
        .filter_map(|row| Some((f64::from(row.t), row.broker.as_ref()?.rss_bytes as f64)))
        .collect();
    if points.len() < SLOPE_SECONDS_MIN {
        return None;
    }
    let count = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (product, square) = points.iter().fold((0.0, 0.0), |(product, square), point| {
        (product + (point.0 - x) * (point.1 - y), square + (point.0 - x).powi(2))
    });
    let mib_an_hour = product / square * 3_600.0 / 1_048_576.0;
    Some(format!(
        "the broker's resident memory grew by {mib_an_hour:.1} MiB an hour, by the slope of {count} seconds"
    ))
}
