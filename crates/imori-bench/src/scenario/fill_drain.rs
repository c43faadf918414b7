//! A queue that is filled first, so that its memory can be read, and then emptied.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use crate::amount::Amount;
use crate::load::phase::{Bounds, Ended, Meter, drive};
use crate::protocol::driver::Wish;
use crate::protocol::session::driver;
use crate::record::report::Count;
use crate::scenario::oneway::{Run, Shape, consumers_of, terms};
use crate::scenario::summary::Ran;
use crate::watch::cost::Cost;

/// How long the broker may settle after it was filled, before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Publishes everything, reads the broker's memory, then consumes everything.
pub(super) fn run(mut run: Run<'_>, shape: &Shape) -> Result<Ran> {
    let count = run.options.messages() / run.publisher_count;
    let goal = count.saturating_mul(run.publisher_count);
    let (flow, progress) = (Arc::clone(&run.flow), &run.progress);
    flow.begin(count, u64::MAX);
    let fill = Meter::start(&run.pids)?;
    let confirmed = run.publisher_count;
    let ended = drive(
        &mut run.consumers,
        Bounds::of(Amount::Count(goal), true),
        |board| board.confirms >= confirmed,
        |_| progress.show("fill", flow.published.load(Ordering::SeqCst), Some(goal)),
    )?;
    let filled = fill.stop()?;
    let settling = Bounds { time: Some(SETTLE), ..Bounds::quiet(SETTLE) };
    drive(&mut run.consumers, settling, |_| false, |_| {})?;
    let settled = Meter::start(&run.pids)?.stop()?;
    let sources = shape.sources.iter();
    for (consumer, (source, _)) in consumers_of(&mut run.consumers).zip(sources) {
        let mut subscribe = Vec::new();
        driver(run.broker).subscribe(source, terms(run.options), Wish::Nothing, &mut subscribe);
        consumer.subscribe(subscribe);
    }
    let drain = Meter::start(&run.pids)?;
    let ended = match ended {
        Ended::Done => drive(
            &mut run.consumers,
            Bounds::of(Amount::Count(goal), false),
            |board| board.received.deliveries >= goal,
            |board| progress.show("drain", board.received.deliveries, Some(goal)),
        )?,
        ended => ended,
    };
    let drained = drain.stop()?;
    let deliveries = run.consumers.board.received.deliveries;
    let mut report = run.report(&drained, deliveries);
    if let Some(broker) = &mut report.broker {
        broker.rss_start = filled.broker_before.rss_bytes;
        broker.rss_peak = broker.rss_peak.max(filled.broker_rss_peak);
    }
    report.counters = counters(&filled, &settled, goal);
    report.notes.push("throughput is that of the drain; the fill is in the counters".to_owned());
    run.finish(report, ended)
}

/// What filling cost, and what the broker's memory is when it is full and quiet.
fn counters(filled: &Cost, settled: &Cost, messages: u64) -> Vec<Count> {
    let grown = settled.broker_after.rss_bytes.saturating_sub(filled.broker_before.rss_bytes);
    let cpu_s = filled.broker_after.cpu_seconds_since(&filled.broker_before);
    vec![
        Count::new("fill_ms", filled.elapsed.as_millis() as u64),
        Count::new("fill_per_s", (messages as f64 / filled.elapsed.as_secs_f64()) as u64),
        Count::new("fill_broker_cpu_ms", (cpu_s * 1_000.0) as u64),
        Count::new("rss_empty_bytes", filled.broker_before.rss_bytes),
        Count::new("rss_full_bytes", settled.broker_after.rss_bytes),
        Count::new("rss_bytes_per_message", grown / messages.max(1)),
    ]
}
