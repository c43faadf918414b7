//! The numbers by which runs are compared, and the better direction of each.

use crate::page::markup::plain_line;
use crate::page::quantity::{bytes, change, grouped, percent, significant, time};
use crate::record::latency::Latency;
use crate::record::report::Report;
use crate::report::drift::Drift;

/// The better direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Better {
    /// Higher is better.
    More,
    /// Lower is better.
    Less,
    /// Lower is better, but it is not judged because it varies too much between runs.
    LessUnjudged,
}

/// One number of a report.
#[derive(Clone, Copy)]
pub(crate) struct Measure {
    /// The name in tables.
    pub(crate) name: &'static str,
    /// The better direction.
    pub(crate) better: Better,
    /// Extracts the number from a report.
    pub(crate) of: fn(&Report) -> Option<f64>,
    /// Formats the number.
    pub(crate) show: fn(f64) -> String,
}

/// The name of the throughput where the runs have no common unit.
pub(crate) const THROUGHPUT: &str = "throughput, a second";
/// The name of the broker's CPU time.
pub(crate) const CPU: &str = "CPU-s a million deliveries";

impl Measure {
    /// The name for these runs: the throughput is named by the operations that it counts.
    pub(crate) fn name_for<'a>(&self, mut reports: impl Iterator<Item = &'a Report>) -> String {
        let unit = reports.next().map(|first| &first.unit);
        match unit.filter(|unit| self.name == THROUGHPUT && reports.all(|report| report.unit == **unit)) {
            Some(unit) => format!("{} a second", plain_line(unit)),
            None => self.name.to_owned(),
        }
    }
}

fn latency(report: &Report, of: fn(&Latency) -> Option<f64>) -> Option<f64> {
    report.latency.as_ref().and_then(of)
}

fn service(report: &Report, of: fn(&Latency) -> Option<f64>) -> Option<f64> {
    report.service.as_ref().and_then(of)
}

/// All measures, the most important ones first.
pub(crate) const MEASURES: [Measure; 24] = [
    Measure { name: THROUGHPUT, better: Better::More, of: |r| Some(r.per_second), show: grouped },
    Measure {
        name: "publishes a second",
        better: Better::More,
        of: Report::publishes_per_second,
        show: grouped,
    },
    Measure {
        name: CPU,
        better: Better::Less,
        of: |r| r.broker.as_ref().and_then(|broker| broker.cpu_s_per_million_deliveries),
        show: significant,
    },
    Measure { name: "time p50", better: Better::Less, of: |r| latency(r, |l| l.p50_us), show: time },
    Measure { name: "time p99", better: Better::Less, of: |r| latency(r, |l| l.p99_us), show: time },
    Measure { name: "time p99.9", better: Better::Less, of: |r| latency(r, |l| l.p999_us), show: time },
    Measure {
        name: "time p99.99",
        better: Better::LessUnjudged,
        of: |r| latency(r, |l| l.p9999_us),
        show: time,
    },
    Measure { name: "time max", better: Better::LessUnjudged, of: |r| latency(r, |l| l.max_us), show: time },
    Measure { name: "service p50", better: Better::Less, of: |r| service(r, |l| l.p50_us), show: time },
    Measure { name: "service p99", better: Better::Less, of: |r| service(r, |l| l.p99_us), show: time },
    Measure { name: "service p99.9", better: Better::Less, of: |r| service(r, |l| l.p999_us), show: time },
    Measure {
        name: "service max",
        better: Better::LessUnjudged,
        of: |r| service(r, |l| l.max_us),
        show: time,
    },
    Measure { name: "confirm p50", better: Better::Less, of: |r| r.confirm.as_ref()?.p50_us, show: time },
    Measure { name: "confirm p99", better: Better::Less, of: |r| r.confirm.as_ref()?.p99_us, show: time },
    Measure {
        name: "not within 50 ms",
        better: Better::LessUnjudged,
        of: |r| r.stalls.as_ref().and_then(|stalls| stalls.available_at_50_ms).map(|share| 1.0 - share),
        show: percent,
    },
    Measure {
        name: "stalls",
        better: Better::LessUnjudged,
        of: |r| r.stalls.as_ref().map(|stalls| stalls.list.len() as f64 + stalls.unlisted as f64),
        show: grouped,
    },
    Measure {
        name: "longest stall, s",
        better: Better::LessUnjudged,
        of: |r| r.stalls.as_ref().map(|stalls| stalls.longest_s),
        show: significant,
    },
    Measure {
        name: "RSS peak",
        better: Better::Less,
        of: |r| r.broker.as_ref().map(|broker| broker.rss_peak as f64),
        show: bytes,
    },
    Measure {
        name: "drift of p50",
        better: Better::LessUnjudged,
        of: |r| Drift::of_p50(r).map(|drift| drift.ratio()),
        show: change,
    },
    Measure {
        name: "drift of p99",
        better: Better::LessUnjudged,
        of: |r| Drift::of_p99(r).map(|drift| drift.ratio()),
        show: change,
    },
    Measure {
        name: "drift of RSS",
        better: Better::LessUnjudged,
        of: |r| Drift::of_memory(r).map(|drift| drift.ratio()),
        show: change,
    },
    Measure {
        name: "context switches a delivery",
        better: Better::LessUnjudged,
        of: |r| per_delivery(r, |broker| broker.context_switches),
        show: significant,
    },
    Measure {
        name: "written bytes a delivery",
        better: Better::LessUnjudged,
        of: |r| per_delivery(r, |broker| broker.write_bytes),
        show: bytes,
    },
    Measure {
        name: "client CPU-us each",
        better: Better::LessUnjudged,
        of: |r| r.client.cpu_us_per_op,
        show: significant,
    },
];

fn per_delivery(report: &Report, of: fn(&crate::record::report::Broker) -> u64) -> Option<f64> {
    let broker = report.broker.as_ref()?;
    (report.deliveries > 0 && of(broker) > 0).then(|| of(broker) as f64 / report.deliveries as f64)
}
