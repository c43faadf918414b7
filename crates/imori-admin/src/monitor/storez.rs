//! `/storez`: state of the store, its progress, and stalls.

use imori_server::broker::COMMIT_BOUNDS_US;
use imori_server::stall::{Cause, Stall, Step};
use serde::Serialize;

use super::monitor_state::MonitorState;
use super::query::{Page, Parameters};
use super::wording::timestamp;
use crate::http::Names;
use crate::limits::MONITOR_QUEUES_MAX;
use crate::milliseconds::millis;

/// The response.
#[derive(Debug, Serialize)]
pub(super) struct Storez<'a> {
    server_id: &'a str,
    now: String,
    store: Store,
    journal: Journal,
    alarms: Alarms,
    confirms: Confirms,
    cells: Vec<Cell>,
    stalls: Stalls,
    num_queues: usize,
    total: usize,
    offset: usize,
    limit: usize,
    queues: Vec<Queue>,
}

/// Identity of the store, and the result of its recovery.
#[derive(Debug, Serialize)]
struct Store {
    /// The first eight hexadecimal digits of its number.
    id: String,
    folder: String,
    last_end: String,
    /// Unacknowledged findings of damaged or missing files, from this and earlier runs.
    damage: Vec<String>,
    recovered: Option<Recovered>,
}

#[derive(Debug, Serialize)]
struct Recovered {
    records: usize,
    files: usize,
    torn: usize,
    damaged: Vec<String>,
    /// Ranges of LSNs in missing files.
    absent: Vec<String>,
    set_aside: Vec<String>,
    took_ms: u64,
    /// The recovery's report as in the log.
    report: String,
}

#[derive(Debug, Serialize)]
struct Journal {
    file_bytes: u64,
    live_files: usize,
    /// Absent before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    free_bytes: Option<u64>,
    next: u64,
    written: u64,
    synced: u64,
    queued_bytes: usize,
    /// Duration so far of the write or sync in progress.
    flushing_ms: Option<u64>,
    commits: Commits,
}

#[derive(Debug, Serialize)]
struct Commits {
    count: u64,
    records: u64,
    bytes: u64,
    mean_us: u64,
    max_us_last_second: u64,
    max_us_last_minute: u64,
    histogram: Vec<Class>,
}

/// A bucket of the histogram.
#[derive(Debug, Serialize)]
struct Class {
    /// Absent for the last bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    le_us: Option<u64>,
    count: u64,
}

/// The conditions that make publishers wait.
#[derive(Debug, Serialize)]
struct Alarms {
    memory: bool,
    disk: bool,
    disk_space: bool,
    /// Number of queues that throttle their publishers.
    queues: usize,
}

#[derive(Debug, Serialize)]
struct Confirms {
    memory: u64,
    os: u64,
    disk: u64,
}

#[derive(Debug, Serialize)]
struct Cell {
    lag_us: u64,
    busy_percent: u8,
}

#[derive(Debug, Serialize)]
struct Stalls {
    total: u64,
    last: Vec<ShownStall>,
}

#[derive(Debug, Serialize)]
struct ShownStall {
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell: Option<u16>,
    began: String,
    lasted_ms: u64,
    is_over: bool,
    cause: &'static str,
    text: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'static str>,
    queued_bytes: usize,
    unsynced_records: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_completed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_silent_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_busy_ms: Option<u64>,
    ran_ms: u64,
    without_processor_ms: u64,
    watched_ms: u64,
    threads_waiting_for_disk: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_some_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    io_full_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_some_percent: Option<f64>,
}

/// A durable queue.
#[derive(Debug, Serialize)]
struct Queue {
    name: String,
    vhost: String,
    /// The confirm level of its persistent messages.
    level: &'static str,
    ready: usize,
    /// Delayed messages.
    delayed: usize,
    unsettled: usize,
    consumers: usize,
    /// Whether its publishers are throttled.
    pressing: bool,
}

/// The parameters of `/storez`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StorezQuery(Page);

impl StorezQuery {
    /// Parses the parameters, or returns what is wrong with them.
    pub(super) fn read(parameters: &Parameters) -> Result<StorezQuery, String> {
        Ok(StorezQuery(parameters.page(MONITOR_QUEUES_MAX)?))
    }
}

impl Storez<'_> {
    /// State of the store with the requested queues and the confirms by level. Without `names` it omits queues, the
    /// folder and findings of damage, which name queues.
    pub(super) fn of<'a>(
        state: &'a MonitorState,
        query: &StorezQuery,
        confirms: [u64; 3],
        names: Names,
    ) -> Storez<'a> {
        let broker = &state.broker;
        let StorezQuery(page) = *query;
        let shown_page = if names == Names(true) { page } else { Page { limit: 0, ..page } };
        let (total, queues) = queues(state, shown_page);
        let cells = broker.cell_figures().into_iter();
        let cells =
            cells.map(|cell| Cell { lag_us: micros(cell.longest_lag), busy_percent: cell.busy_percent });
        let memory_figures = broker.memory_figures();
        let [memory, os, disk] = confirms;
        Storez {
            server_id: state.broker.server_id(),
            now: timestamp(broker.now()),
            store: store(state, names),
            journal: journal(state),
            alarms: Alarms {
                memory: memory_figures.is_alarmed,
                disk: memory_figures.is_disk_alarmed,
                disk_space: broker.journal_figures().is_space_low,
                queues: memory_figures.throttling_queues,
            },
            confirms: Confirms { memory, os, disk },
            cells: cells.collect(),
            stalls: Stalls {
                total: Cause::ALL.into_iter().map(|cause| broker.stall_count(cause)).sum(),
                last: broker.stalls().iter().map(shown).collect(),
            },
            num_queues: queues.len(),
            total,
            offset: page.offset,
            limit: page.limit,
            queues,
        }
    }
}

fn store(state: &MonitorState, Names(are_shown): Names) -> Store {
    let facts = state.broker.store_facts();
    Store {
        id: facts.id.iter().take(4).map(|byte| format!("{byte:02x}")).collect(),
        folder: if are_shown { facts.folder.display().to_string() } else { String::new() },
        last_end: facts.last_end,
        damage: if are_shown { state.broker.damages() } else { Vec::new() },
        recovered: facts.report.map(|report| Recovered {
            records: report.record_count,
            files: report.file_count,
            torn: report.torn.len(),
            damaged: report.damaged.iter().map(|file| file.name.clone()).collect(),
            absent: report.absent.iter().map(ToString::to_string).collect(),
            set_aside: report.set_aside.clone(),
            took_ms: millis(report.took),
            report: report.to_string(),
        }),
    }
}

fn journal(state: &MonitorState) -> Journal {
    let (journal, commits) = (state.broker.journal_figures(), state.broker.commit_figures());
    let counts = commits.counts;
    let bounds = COMMIT_BOUNDS_US.into_iter().map(Some).chain([None]);
    Journal {
        file_bytes: journal.file_bytes,
        live_files: journal.live_files,
        free_bytes: journal.free_bytes,
        next: journal.next,
        written: journal.written,
        synced: journal.synced,
        queued_bytes: journal.queued_bytes,
        flushing_ms: journal.flushing_for.map(millis),
        commits: Commits {
            count: counts.commits,
            records: counts.records,
            bytes: counts.bytes,
            mean_us: micros(counts.mean()),
            max_us_last_second: micros(commits.longest_of_second),
            max_us_last_minute: micros(commits.longest_of_minute),
            histogram: bounds.zip(counts.classes).map(|(le_us, count)| Class { le_us, count }).collect(),
        },
    }
}

/// Number of durable queues, and one page of them in slot order. Each is locked briefly.
fn queues(state: &MonitorState, page: Page) -> (usize, Vec<Queue>) {
    let (mut total, mut queues) = (0, Vec::new());
    for key in state.broker.queue_ids() {
        let is_shown = total >= page.offset && queues.len() < page.limit;
        let found = state.broker.with_queue(key, |queue| {
            let level = queue.durability()?.level;
            Some(is_shown.then(|| {
                (
                    queue.vhost(),
                    Queue {
                        name: queue.name().to_string(),
                        vhost: String::new(),
                        level: level.as_str(),
                        ready: queue.ready_len(),
                        delayed: queue.delayed_len(),
                        unsettled: queue.unsettled_len(),
                        consumers: queue.consumers_len(),
                        pressing: queue.is_throttling(),
                    },
                )
            }))
        });
        if let Some(shown) = found.flatten() {
            total += 1;
            queues
                .extend(shown.map(|(vhost, queue)| Queue { vhost: state.broker.vhost_name(vhost), ..queue }));
        }
    }
    (total, queues)
}

fn shown(stall: &Stall) -> ShownStall {
    let seen = &stall.evidence;
    ShownStall {
        what: stall.what.label(),
        cell: stall.what.cell(),
        began: timestamp(stall.began),
        lasted_ms: millis(stall.lasted),
        is_over: stall.is_over,
        cause: stall.cause.label(),
        text: stall.cause.text(),
        step: stall.step.map(Step::text),
        queued_bytes: stall.queued_bytes,
        unsynced_records: stall.unsynced,
        device_in_flight: seen.in_flight_max,
        device_completed: seen.completed,
        device_silent_ms: seen.completed.map(|_| millis(seen.silent)),
        device_busy_ms: seen.device_busy.map(millis),
        ran_ms: millis(seen.ran),
        without_processor_ms: millis(seen.starved),
        watched_ms: millis(seen.watched),
        threads_waiting_for_disk: seen.others_waiting,
        io_some_percent: seen.io_pressure.map(|pressure| pressure.some_percent),
        io_full_percent: seen.io_pressure.map(|pressure| pressure.full_percent),
        cpu_some_percent: seen.cpu_pressure.map(|pressure| pressure.some_percent),
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
