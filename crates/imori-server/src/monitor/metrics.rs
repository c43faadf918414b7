//! `/metrics`: the broker's numbers for Prometheus.

use imori_core::confirm::Level;
use imori_core::queue::Queue;
use imori_core::world::Counter;

use super::exposition::Exposition;
use super::monitored::Monitored;
use super::process::memory_bytes;
use crate::shared::CellHandle;
use crate::stall::Cause;
use crate::store::BOUNDS_US;

/// The type of the answer.
pub(super) const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The numbers as they are now.
pub(super) fn metrics(monitored: &Monitored) -> String {
    let mut page = Exposition::default();
    push_store(&mut page, monitored);
    push_cells(&mut page, monitored);
    push_messages(&mut page, monitored);
    let connections: usize = monitored.cells().map(CellHandle::socket_connections).sum();
    page.gauge("imori_connections", "Open connections.", connections as f64);
    if let Some(bytes) = memory_bytes() {
        page.gauge("imori_process_resident_bytes", "Memory that the process has.", bytes as f64);
    }
    let memory = &monitored.shared.memory;
    page.gauge("imori_waiting_bytes", "Memory of what waits.", memory.gauge().bytes() as f64);
    let long_frames = memory.long_frames();
    let help = "Memory of large messages that are not whole yet.";
    page.gauge("imori_unfinished_bytes", help, long_frames.bytes() as f64);
    let help = "Connections that are not read until there is memory for their large message.";
    page.gauge("imori_unfinished_waiting", help, long_frames.waiting() as f64);
    page.gauge("imori_memory_mark_bytes", "Above this publishers wait.", memory.mark_bytes() as f64);
    page.into_text()
}

fn push_store(page: &mut Exposition, monitored: &Monitored) {
    let shared = &monitored.shared;
    let journal = &shared.journal;
    let help = "Confirms that left, by what they promise.";
    let confirms = Level::ALL
        .map(|level| (format!("level=\"{level}\""), monitored.counted(Counter::confirmed(level)) as f64));
    page.counters("imori_confirms_total", help, &confirms);
    let counts = journal.commits().counts();
    let help = "From the write of a batch to the end of its sync.";
    let bounds = BOUNDS_US.map(|micros| micros as f64 / 1e6);
    page.histogram("imori_commit_seconds", help, &bounds, &counts.classes, counts.total.as_secs_f64());
    // A commit that does not end is not counted yet, and is what is asked for.
    let longest = journal.commits().longest_of_second().max(journal.flushing_for().unwrap_or_default());
    let help = "The longest commit of the last second, the one under way included.";
    page.gauge("imori_commit_max_seconds", help, longest.as_secs_f64());
    page.counter("imori_journal_records_total", "Records that were committed.", counts.records as f64);
    page.counter("imori_journal_bytes_total", "Bytes of these.", counts.bytes as f64);
    page.gauge("imori_journal_queued_bytes", "Bytes that wait for the disk.", journal.queued_bytes() as f64);
    page.gauge("imori_journal_live_files", "Journal files that are needed.", journal.live_files() as f64);
    if let Some(free_bytes) = journal.free_bytes() {
        page.gauge("imori_disk_free_bytes", "What is left on the disk.", free_bytes as f64);
    }
    let help = "Findings of damage that nobody has acknowledged.";
    page.gauge("imori_store_damages", help, shared.damages.findings().len() as f64);
    let help = "Whether publishers wait: for memory, or for the disk.";
    let alarms = [
        (String::from("of=\"memory\""), f64::from(u8::from(shared.memory.is_alarmed()))),
        (String::from("of=\"disk\""), f64::from(u8::from(shared.memory.is_disk_alarmed()))),
    ];
    page.gauges("imori_alarm", help, &alarms);
    let help = "Queues that have their publishers wait, as they grow faster than their pages are written.";
    page.gauge("imori_queues_pressing", help, shared.memory.gauge().throttling() as f64);
    let help = "Late flushes and cells that are over, by what was behind them.";
    let stalls =
        Cause::ALL.map(|cause| (format!("cause=\"{}\"", cause.label()), shared.stalls.count(cause) as f64));
    page.counters("imori_stalls_total", help, &stalls);
}

fn push_cells(page: &mut Exposition, monitored: &Monitored) {
    let now = monitored.now();
    let (mut lags, mut busy) = (Vec::new(), Vec::new());
    for (id, cell) in monitored.cells().enumerate() {
        let lag = cell.pulse.latest().max(cell.pulse.lag(now, cell.load.is_parked()));
        lags.push((format!("cell=\"{id}\""), lag.as_secs_f64()));
        busy.push((format!("cell=\"{id}\""), f64::from(cell.load.busy_percent()) / 100.0));
    }
    let help = "How late a cell came to its work at most, in the last second.";
    page.gauges("imori_cell_lag_seconds", help, &lags);
    page.gauges("imori_cell_busy_ratio", "The part of the time in which a cell works.", &busy);
}

fn push_messages(page: &mut Exposition, monitored: &Monitored) {
    for (event, name, help) in [
        (Counter::Published, "imori_published_total", "Messages that were handed in."),
        (Counter::Unroutable, "imori_unroutable_total", "Messages that found nobody."),
        (Counter::ReplyDropped, "imori_replies_dropped_total", "Replies that found their inbox gone."),
        (Counter::DeadLettered, "imori_dead_lettered_total", "Messages that were dead-lettered."),
        (
            Counter::DeadLetterDropped,
            "imori_dead_letters_dropped_total",
            "Dead letters that found no exchange.",
        ),
        (
            Counter::NoForm,
            "imori_no_form_total",
            "Deliveries left out for want of a form in a protocol, or as too large for it.",
        ),
        (
            Counter::CutTooSlow,
            "imori_cut_too_slow_total",
            "Connections cut because too much waited for them.",
        ),
        (
            Counter::CutUnfinished,
            "imori_cut_unfinished_total",
            "Connections cut because they did not finish a large message while others waited for its memory.",
        ),
        (
            Counter::Throttled,
            "imori_queue_presses_total",
            "How often a publisher had to wait for such a queue.",
        ),
        (Counter::Fault, "imori_faults_total", "Connections ended by a fault in the broker."),
    ] {
        page.counter(name, help, monitored.counted(event) as f64);
    }
    let (mut queues, mut ready, mut delayed, mut unsettled) = (0_u64, 0_u64, 0_u64, 0_u64);
    for key in monitored.shared.queues.keys() {
        let lens = |queue: &mut Queue| (queue.ready_len(), queue.delayed_len(), queue.unsettled_len());
        if let Some((waiting, later, out)) = monitored.shared.queues.with(key, lens) {
            queues += 1;
            ready += waiting as u64;
            delayed += later as u64;
            unsettled += out as u64;
        }
    }
    page.gauge("imori_queues", "Queues.", queues as f64);
    page.gauge("imori_queued_messages_ready", "Messages that wait in queues.", ready as f64);
    page.gauge("imori_queued_messages_delayed", "Messages that wait for their time.", delayed as f64);
    page.gauge("imori_queued_messages_unsettled", "Messages that are with consumers.", unsettled as f64);
}
