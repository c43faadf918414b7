//! The plots of one run, and plots that overlay several runs.

use crate::page::axis::{Axis, Scale, Unit};
use crate::page::buckets::{BUCKETS_MAX, Bucket, Buckets};
use crate::page::plot::{Plot, Series, SeriesKind};
use crate::record::latency::LatencyKind;
use crate::record::report::{RateStep, Report};
use crate::record::series::{BrokerSecond, HostSecond};

/// A plot of the seconds of a run that ended then.
fn of_time(title: &str, y: Axis, end: f64, series: Vec<Series>) -> Plot {
    let x = Axis::new("time", Scale::Linear, Unit::Elapsed).reaching(&[0.0, end]);
    let series = series.into_iter().filter(Series::has_values).collect();
    Plot { title: title.to_owned(), x, y, series }
}

fn points<'a>(
    buckets: &'a Buckets,
    value: impl Fn(&Bucket) -> Option<f64> + 'a,
) -> impl Iterator<Item = (f64, Option<f64>)> + 'a {
    buckets.list.iter().map(move |bucket| (bucket.start, value(bucket)))
}

/// The deliveries offered, sent and delivered in a second.
pub(crate) fn throughput(report: &Report, buckets: &Buckets) -> Plot {
    let fan_out = report.fan_out.max(1) as f64;
    let mut offered = Series::line("offered", 0, points(buckets, |b| Some(b.rate(b.sum.offered) * fan_out)));
    offered.kind = SeriesKind::Ground;
    let offered = report.open.is_some().then_some(offered);
    // A broker that keeps up delivers what is sent: two lines of one width would be one.
    let mut sent = Series::line("sent", 1, points(buckets, |b| Some(b.rate(b.sum.sent) * fan_out)));
    sent.kind = SeriesKind::Wide;
    let confirmed =
        buckets.list.iter().any(|b| b.sum.confirmed > 0).then(|| {
            Series::line("confirmed", 2, points(buckets, |b| Some(b.rate(b.sum.confirmed) * fan_out)))
        });
    let delivered = Series::line("delivered", 0, points(buckets, |b| Some(b.rate(b.sum.delivered))));
    let y = Axis::new("a second", Scale::Linear, Unit::Number);
    of_time(
        "Throughput",
        y,
        buckets.end,
        offered.into_iter().chain([sent, delivered]).chain(confirmed).collect(),
    )
}

/// Percentiles second by second.
pub(crate) fn times(buckets: &Buckets) -> Plot {
    let series = vec![
        Series::line("max", 1, points(buckets, |b| b.sum.max_us)),
        Series::line("p99", 2, points(buckets, |b| b.sum.p99_us)),
        Series::line("p50", 0, points(buckets, |b| b.sum.p50_us)),
    ];
    of_time(
        "Response time, second by second",
        Axis::new("response time", Scale::Log, Unit::Micros),
        buckets.end,
        series,
    )
}

/// The number of operations in flight at the end of each second.
pub(crate) fn in_flight(buckets: &Buckets) -> Plot {
    let series = vec![Series::line("in flight", 0, points(buckets, |b| Some(b.sum.in_flight as f64)))];
    of_time(
        "Operations in flight",
        Axis::new("at the end of each second", Scale::Linear, Unit::Number),
        buckets.end,
        series,
    )
}

/// The delay between the due time of operations and their sending.
pub(crate) fn send_lag(buckets: &Buckets) -> Plot {
    let series = vec![Series::line("send lag", 0, points(buckets, |b| b.sum.send_lag_max_us))];
    of_time("Send lag of this tool", Axis::new("greatest", Scale::Log, Unit::Micros), buckets.end, series)
}

/// The findings of a search for the highest rate at each rate.
pub(crate) fn search(steps: &[RateStep]) -> Plot {
    let of = |is_kept: bool| {
        let mut points: Vec<(f64, Option<f64>)> = steps
            .iter()
            .filter(|step| step.is_kept == is_kept)
            .map(|step| (step.rate, step.p99_us))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let series = vec![Series::line("kept", 0, of(true)), Series::line("not kept", 1, of(false))];
    Plot {
        title: "Search for the highest rate".to_owned(),
        x: Axis::new("offered a second", Scale::Linear, Unit::Number).reaching(&[0.0]),
        y: Axis::new("p99", Scale::Log, Unit::Micros),
        series: series.into_iter().filter(Series::has_values).collect(),
    }
}

/// The percentile curves of a run.
pub(crate) fn percentiles(report: &Report) -> Plot {
    let mut series = vec![Series::line(time_name(report), 0, curve(&report.curve))];
    if !report.service_curve.is_empty() {
        series.push(Series::line("service time", 1, curve(&report.service_curve)));
    }
    of_tail(series)
}

/// The name of a run's times.
pub(crate) fn time_name(report: &Report) -> &'static str {
    match (&report.open, report.latency.as_ref().map(|latency| latency.kind)) {
        (Some(_), _) | (None, Some(LatencyKind::Response)) => "response time",
        (None, Some(LatencyKind::Queueing)) => "queueing time",
        (None, _) => "service time",
    }
}

fn of_tail(series: Vec<Series>) -> Plot {
    let series: Vec<Series> = series.into_iter().filter(Series::has_values).collect();
    Plot {
        title: "Percentiles".to_owned(),
        x: Axis::new("share of operations that took at most this", Scale::Tail, Unit::Share),
        y: Axis::new("time", Scale::Log, Unit::Micros),
        series,
    }
}

fn curve(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, Option<f64>)> {
    points
        .iter()
        .filter(|(quantile, _)| (0.5..=1.0).contains(quantile))
        .map(|(quantile, us)| (*quantile, Some(*us)))
}

/// CPUs that broker and client used.
pub(crate) fn cpu(buckets: &Buckets) -> Plot {
    let broker = move |b: &Bucket| b.sum.broker.as_ref().map(|broker| broker.cpu_s / b.seconds);
    let series = vec![
        Series::line("client", 1, points(buckets, |b| Some(b.sum.client_cpu_s / b.seconds))),
        Series::line("broker", 0, points(buckets, broker)),
    ];
    of_time("CPU", Axis::new("CPUs in use", Scale::Linear, Unit::Number), buckets.end, series)
}

/// A figure of the broker, as a plot of its own.
fn of_broker(title: &str, y: Axis, buckets: &Buckets, value: impl Fn(&BrokerSecond, f64) -> f64) -> Plot {
    let value = |b: &Bucket| b.sum.broker.as_ref().map(|broker| value(broker, b.seconds));
    of_time(title, y, buckets.end, vec![Series::line("broker", 0, points(buckets, value))])
}

/// Memory of the broker.
pub(crate) fn memory(buckets: &Buckets) -> Plot {
    let y = Axis::new("resident", Scale::Linear, Unit::Bytes);
    of_broker("Memory of the broker", y, buckets, |broker, _| broker.rss_bytes as f64)
}

/// The broker's writes to disks.
pub(crate) fn disk(buckets: &Buckets) -> Plot {
    let read = |b: &Bucket| b.sum.broker.as_ref().map(|broker| broker.read_bytes as f64 / b.seconds);
    let written = |b: &Bucket| b.sum.broker.as_ref().map(|broker| broker.write_bytes as f64 / b.seconds);
    let series = vec![
        Series::line("read", 1, points(buckets, read)),
        Series::line("written", 0, points(buckets, written)),
    ];
    of_time(
        "Disk traffic of the broker",
        Axis::new("a second", Scale::Linear, Unit::Bytes),
        buckets.end,
        series,
    )
}

/// Context switches of the broker: a thread gave up or lost its CPU.
pub(crate) fn switches(buckets: &Buckets) -> Plot {
    let y = Axis::new("a second", Scale::Linear, Unit::Number);
    of_broker("Context switches of the broker", y, buckets, |broker, seconds| {
        broker.context_switches as f64 / seconds
    })
}

/// A series of a figure of the machine.
fn host(name: &str, style: usize, buckets: &Buckets, value: impl Fn(&HostSecond) -> Option<f64>) -> Series {
    Series::line(name, style, points(buckets, |b| b.sum.host.as_ref().and_then(&value)))
}

/// The canaries: what would be late if the broker were not to blame.
pub(crate) fn canaries(buckets: &Buckets) -> Plot {
    let series = vec![
        host("client", 1, buckets, |host| host.client_canary_max_us),
        host("CPUs of the broker", 3, buckets, |host| host.cpu_canary_max_us),
        host("disk", 0, buckets, |host| host.disk_canary_max_us),
        host("network", 2, buckets, |host| host.network_canary_max_us),
    ];
    of_time(
        "Canaries: how late each was at most",
        Axis::new("late by", Scale::Log, Unit::Micros),
        buckets.end,
        series,
    )
}

/// Pressure, as the kernel counts it.
pub(crate) fn pressure(buckets: &Buckets) -> Plot {
    let series = vec![
        host("waiting for a CPU", 1, buckets, |host| host.psi_cpu),
        host("waiting for a disk", 0, buckets, |host| host.psi_io),
        host("waiting for memory", 2, buckets, |host| host.psi_memory),
        host("taken by the hypervisor", 3, buckets, |host| host.steal),
    ];
    of_time(
        "Pressure on the machine",
        Axis::new("share of the time", Scale::Linear, Unit::Share),
        buckets.end,
        series,
    )
}

/// A run among others: its name, its style, and itself.
pub(crate) type Overlaid<'a> = (&'a str, usize, &'a Report);

/// Percentile curves of several runs.
pub(crate) fn percentiles_of_all(runs: &[Overlaid<'_>]) -> Plot {
    of_tail(
        runs.iter().map(|(name, style, report)| Series::line(name, *style, curve(&report.curve))).collect(),
    )
}

/// Something of each second of several runs.
pub(crate) fn seconds_of_all(
    title: &str,
    y: Axis,
    runs: &[Overlaid<'_>],
    value: impl Fn(&Bucket) -> Option<f64> + Copy,
) -> Plot {
    let mut end: f64 = 0.0;
    let series = runs
        .iter()
        .map(|(name, style, report)| {
            let buckets = Buckets::of(&report.rows, report.seconds, BUCKETS_MAX);
            end = end.max(buckets.end);
            Series::line(name, *style, points(&buckets, value))
        })
        .collect();
    of_time(title, y, end, series)
}
