//! The fill-drain phase of `queue`: fills the queues, reads the broker's memory, and empties them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use crate::amount::Amount;
use crate::load::phase::{Bounds, Ended, drive};
use crate::protocol::driver::ConfirmMode;
use crate::protocol::session::driver;
use crate::record::report::NamedCount;
use crate::scenario::oneway::Run;
use crate::scenario::oneway_role::consumers_of;
use crate::scenario::shape::{Shape, terms};
use crate::scenario::summary::Ran;
use crate::watch::cost::Cost;

/// Time for the broker to settle after the fill, before its memory is read.
const SETTLE: Duration = Duration::from_secs(2);

/// Publishes everything, reads the broker's memory, then consumes everything.
pub(super) fn run(mut run: Run<'_>, shape: &Shape) -> Result<Ran> {
    let count = run.options.messages() / run.publisher_count;
    let goal = count.saturating_mul(run.publisher_count);
    let (flow, stage) = (Arc::clone(&run.flow), run.stage);
    stage.phase("fill", None);
    flow.begin(count, u64::MAX);
    let fill = stage.watch.measure()?;
    // Without a window only the last message of each publisher requests a confirm, unless the
    // protocol confirms all.
    let is_each = run.options.confirm.is_some() || driver(run.broker)?.confirms_by_count();
    let confirmed = if is_each { goal } else { run.publisher_count };
    let filled = drive(
        &mut run.consumers,
        Bounds::of(Amount::Count(goal), true),
        |board| board.confirms >= confirmed,
        |board| stage.show(flow.published.load(Ordering::SeqCst), Some(goal), &board.timeline),
    );
    let ended = kept(&mut run, filled);
    let filled = stage.watch.measured(fill)?;
    let settling = Bounds { time: Some(SETTLE), ..Bounds::quiet(SETTLE) };
    let ended = match ended {
        Ended::Done => {
            let settled = drive(&mut run.consumers, settling, |_| false, |_| {});
            kept(&mut run, settled)
        }
        ended => ended,
    };
    let settled = stage.watch.measured(stage.watch.measure()?)?;
    let sources = shape.sources.iter();
    for (consumer, (source, _)) in consumers_of(&mut run.consumers).zip(sources) {
        let mut subscribe = Vec::new();
        driver(run.broker)?.subscribe(source, terms(run.options), ConfirmMode::None, &mut subscribe);
        consumer.subscribe(subscribe);
    }
    stage.phase("drain", None);
    let drain = stage.watch.measure()?;
    let ended = match ended {
        Ended::Done | Ended::TimeOver => {
            let drained = drive(
                &mut run.consumers,
                Bounds::of(Amount::Count(goal), false),
                |board| board.received.deliveries >= goal,
                |board| stage.show(board.received.deliveries, Some(goal), &board.timeline),
            );
            kept(&mut run, drained)
        }
        ended => ended,
    };
    let drained = stage.watch.measured(drain)?;
    let deliveries = run.consumers.board.received.deliveries;
    let mut report = run.report(&drained, deliveries);
    if let Some(broker) = &mut report.broker {
        broker.rss_start = filled.broker_before.rss_bytes;
        broker.rss_peak = broker.rss_peak.max(filled.broker_rss_peak);
    }
    report.counters = counters(&filled, &settled, &drained, goal);
    report.notes.push("throughput is that of the drain; the fill is in the counters".to_owned());
    run.finish(report, ended)
}

/// The way a step ended; a broken connection ends the run, but its measurements are kept.
fn kept(run: &mut Run<'_>, ended: Result<Ended>) -> Ended {
    ended.unwrap_or_else(|error| {
        run.broken.get_or_insert(error);
        Ended::Broken
    })
}

/// The cost of the fill, and the broker's memory when it is full and idle.
fn counters(filled: &Cost, settled: &Cost, drained: &Cost, messages: u64) -> Vec<NamedCount> {
    let grown = settled.broker_after.rss_bytes.saturating_sub(filled.broker_before.rss_bytes);
    let cpu_s = filled.broker_after.cpu_seconds_since(&filled.broker_before);
    vec![
        NamedCount::new("fill_ms", filled.elapsed.as_millis() as u64),
        NamedCount::new("fill_per_s", (messages as f64 / filled.elapsed.as_secs_f64()) as u64),
        NamedCount::new("fill_broker_cpu_ms", (cpu_s * 1_000.0) as u64),
        NamedCount::new("rss_empty_bytes", filled.broker_before.rss_bytes),
        NamedCount::new("fill_rss_peak_bytes", filled.broker_rss_peak),
        NamedCount::new("rss_full_bytes", settled.broker_after.rss_bytes),
        NamedCount::new("drain_rss_peak_bytes", drained.broker_rss_peak),
        NamedCount::new("rss_bytes_per_message", grown / messages.max(1)),
        NamedCount::new("fill_write_bytes", written(filled)),
    ]
}

/// Bytes that the broker wrote to disks.
fn written(cost: &Cost) -> u64 {
    cost.broker_after.write_bytes.saturating_sub(cost.broker_before.write_bytes)
}
