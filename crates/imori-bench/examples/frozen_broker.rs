//! Writes reports about a model of a broker: ten minutes of open loop, 0.2 ms per call, and a
//! one-second freeze every 45 s.
//!
//! It also writes a run without freezes, and a sweep over depths. Nothing is measured, so every
//! number is known in advance.
//!
//! `cargo run -p imori-bench --example frozen_broker -- FOLDER`

use std::path::PathBuf;

use anyhow::{Context, Result};
use imori_bench::{
    Axis, BrokerSecond, HEAT_BOUNDS_US, HostSecond, Outputs, Period, Plot, Point, Report, Run, Runs, Scale,
    Second, Series, SeriesKind, Stall, Stalls, Unit, Verdict,
};
use serde_json::json;

const SECONDS: u32 = 600;
const RATE: u32 = 1_000;
const PERIOD: u32 = 45;
const PHASE: u32 = 20;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).context("no folder is named; give one as argument")?);
    std::fs::create_dir_all(&folder)?;
    let at = |name: &str| Some(folder.join(name).to_string_lossy().into_owned());
    let frozen = report(true, 1);
    let one = Runs::new(vec![Run { side: String::new(), report: frozen }]);
    Outputs { json: at("run.json"), csv: at("."), html: at("report.html") }.publish("", &one)?;
    let turns = (1..=3).flat_map(|seed| {
        [("frozen", true), ("steady", false)]
            .map(|(side, freezes)| Run { side: side.to_owned(), report: report(freezes, seed) })
    });
    let versus = Runs::new(turns.collect());
    let outputs = Outputs { json: at("versus.json"), csv: None, html: at("versus.html") };
    outputs.write("frozen against steady: queue, 1 000/s, level memory", &versus)?;
    std::fs::write(folder.join("sweep.svg"), sweep(SeriesKind::Line).svg_file(720.0))?;
    std::fs::write(folder.join("bars.svg"), sweep(SeriesKind::Bars).svg_file(720.0))?;
    Ok(())
}

/// A deterministic pseudo-random generator.
struct Lot(u64);

impl Lot {
    /// The next value, from 0 to 1.
    fn draw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn report(freezes: bool, seed: u64) -> Report {
    let mut lot = Lot(seed);
    let (mut responses, mut services) = (Vec::new(), Vec::new());
    let mut rows: Vec<Second> = (0..SECONDS).map(|t| Second { t, ..Second::default() }).collect();
    let mut per_second: Vec<Vec<f64>> = vec![Vec::new(); SECONDS as usize];
    let (mut due, mut free) = (0.0_f64, 0.0_f64);
    loop {
        due += -(1.0 - lot.draw()).ln() / f64::from(RATE);
        if due >= f64::from(SECONDS) {
            break;
        }
        let mut begun = due.max(free);
        let cycle = (begun - f64::from(PHASE)).rem_euclid(f64::from(PERIOD));
        if freezes && begun >= f64::from(PHASE) && cycle < 1.0 {
            begun += 1.0 - cycle;
        }
        free = begun + 0.000_2 * (0.8 + 0.4 * lot.draw());
        let response = (free - due) * 1e6;
        responses.push(response);
        services.push((free - begun) * 1e6 + 4.0 * lot.draw());
        let ended = free as usize;
        if let Some(row) = rows.get_mut(due as usize) {
            row.offered += 1;
            row.sent += 1;
        }
        if let (Some(row), Some(times)) = (rows.get_mut(ended), per_second.get_mut(ended)) {
            row.delivered += 1;
            row.confirmed += 1;
            times.push(response);
        }
    }
    for (row, times) in rows.iter_mut().zip(&mut per_second) {
        fill(row, times, &mut lot);
    }
    let stalls = stalls(freezes, &responses);
    of(freezes, seed, rows, stalls, &mut responses, &mut services)
}

fn fill(row: &mut Second, times: &mut [f64], lot: &mut Lot) {
    times.sort_by(f64::total_cmp);
    row.heat = vec![0; HEAT_BOUNDS_US.len() + 1];
    for time in times.iter() {
        if let Some(count) = row.heat.get_mut(HEAT_BOUNDS_US.partition_point(|bound| bound < time)) {
            *count += 1;
        }
    }
    row.p50_us = quantile(times, 0.5);
    row.p99_us = quantile(times, 0.99);
    row.max_us = times.last().copied();
    row.in_flight = (row.offered * 2).saturating_sub(row.delivered + row.offered.min(row.delivered));
    row.send_lag_max_us = Some(40.0 + 160.0 * lot.draw());
    row.client_cpu_s = 0.031 + 0.006 * lot.draw();
    row.broker = Some(BrokerSecond {
        cpu_s: 0.000_021 * row.delivered as f64 + 0.002 * lot.draw(),
        rss_bytes: 21_000_000 + u64::from(row.t) * 9_000 + u64::from(row.t % 90) * 40_000,
        context_switches: row.delivered * 2 + (120.0 * lot.draw()) as u64,
        read_bytes: 0,
        write_bytes: row.delivered * 150 + (40_000.0 * lot.draw()) as u64,
    });
    row.host = Some(HostSecond {
        psi_cpu: Some(0.02 + 0.03 * lot.draw()),
        psi_io: Some(0.004 * lot.draw()),
        psi_memory: Some(0.0),
        steal: Some(0.003 * lot.draw()),
        running: Some(1),
        client_canary_max_us: Some(120.0 + 700.0 * lot.draw().powi(4)),
        cpu_canary_max_us: Some(90.0 + 600.0 * lot.draw().powi(4)),
        disk_canary_max_us: Some(1_900.0 + 6_000.0 * lot.draw().powi(3)),
        network_canary_max_us: Some(60.0 + 200.0 * lot.draw().powi(3)),
    });
}

fn quantile(sorted: &[f64], quantile: f64) -> Option<f64> {
    let above = (sorted.len() as f64 * (1.0 - quantile)) as usize;
    if above < 10 { None } else { sorted.get((sorted.len() - above).saturating_sub(1)).copied() }
}

fn stalls(freezes: bool, responses: &[f64]) -> Stalls {
    let mut stalls = Stalls { threshold_us: 20_000.0, ..Stalls::default() };
    let within = responses.iter().filter(|time| **time <= 50_000.0).count();
    stalls.available_at_50_ms = Some(within as f64 / responses.len() as f64);
    if !freezes {
        stalls.no_period = Some("nothing stood still".to_owned());
        return stalls;
    }
    for (cycle, start) in (PHASE..SECONDS).step_by(PERIOD as usize).enumerate() {
        let (verdict, evidence) = match cycle {
            3 => (Verdict::Disk, "disk canary 412 ms late, io pressure 38 %"),
            8 => (Verdict::Unknown, "disk canary has no sample, network canary 180 ms late"),
            _ => (
                Verdict::Broker,
                "all canaries fine: client 0.3 ms, CPUs 0.2 ms, disk 4.1 ms, network 0.1 ms",
            ),
        };
        stalls.list.push(Stall {
            start_s: f64::from(start),
            length_s: 1.2,
            operations: 1_190,
            worst_us: 1e6,
            delay_s: 598.0,
            verdict,
            evidence: evidence.to_owned(),
        });
    }
    stalls.per_hour = vec![(Verdict::Broker, 66.0), (Verdict::Disk, 6.0), (Verdict::Unknown, 6.0)];
    stalls.longest_s = 1.2;
    stalls.period = Some(Period {
        period_s: f64::from(PERIOD),
        phase_s: f64::from(PHASE),
        confidence: 0.97,
        cycles: 13,
        suspect: None,
    });
    stalls
}

fn latency(sorted: &[f64]) -> serde_json::Value {
    json!({
        "kind": "service", "samples": sorted.len(), "p50_us": quantile(sorted, 0.5), "p99_us": quantile(sorted, 0.99),
        "p999_us": quantile(sorted, 0.999), "p9999_us": quantile(sorted, 0.9999), "max_us": sorted.last(),
    })
}

/// Enough quantiles to draw the curve.
fn curve(sorted: &[f64]) -> Vec<(f64, f64)> {
    (0..=100)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / 20.0))
        .filter_map(|at| Some((at, quantile(sorted, at)?)))
        .chain(sorted.last().map(|greatest| (1.0, *greatest)))
        .collect()
}

fn of(
    freezes: bool,
    seed: u64,
    rows: Vec<Second>,
    stalls: Stalls,
    responses: &mut [f64],
    services: &mut [f64],
) -> Report {
    responses.sort_by(f64::total_cmp);
    services.sort_by(f64::total_cmp);
    let count = responses.len();
    let rate = count as f64 / f64::from(SECONDS);
    let cpu_s: f64 = rows.iter().filter_map(|row| row.broker.as_ref()).map(|broker| broker.cpu_s).sum();
    let report = json!({
        "format": 1, "tool": env!("CARGO_PKG_VERSION"), "scenario": "queue", "mode": "open 1000/s poisson", "depth": null,
        "command": ["imori", "bench", "queue", "model://127.0.0.1", "--rate", "1000", "--time", "600s", "--level", "memory"],
        "seed": seed, "started_at": 1_767_225_600_u64 + seed * 700,
        "machine": {
            "cpu": "a model of a CPU", "cpus": 2, "governor": "performance", "memory_bytes": 8_321_499_136_u64,
            "kernel": "Linux 6.18", "system": "Debian GNU/Linux 12", "file_system": "ext4",
        },
        "open": { "rate": RATE, "arrival": "poisson" }, "url": "model://127.0.0.1",
        "server": if freezes { "a model that freezes" } else { "a model" },
        "asked": { "level": "memory", "size": 1_024, "publishers": 4, "consumers": 4, "queues": 4, "ack": "each", "prefetch": 100 },
        "outcome": "done", "seconds": SECONDS, "unit": "deliveries", "operations": count, "per_second": rate,
        "deliveries": count, "deliveries_per_second": rate,
        "latency": latency(responses), "service": latency(services),
        "curve": curve(responses), "service_curve": curve(services),
        "broker": {
            "pids": [1], "processes": 1, "threads": 4, "cpus_allowed": "0-1", "context_switches": count * 2,
            "read_bytes": 0, "write_bytes": count * 150, "cpu_s": cpu_s,
            "cpu_s_per_million_deliveries": cpu_s * 1e6 / count as f64, "per_cpu_s": count as f64 / cpu_s,
            "rss_start": 21_000_000, "rss_peak": 29_800_000, "rss_end": 28_100_000,
        },
        "client": { "threads": 1, "cpus_allowed": "0-1", "cpu_s": 20.4, "cpu_us_per_op": 34.0, "rss_end": 9_000_000 },
        "ledger": {
            "sent": count, "good": count, "lost": 0, "duplicated": 0, "redelivered": 0, "altered": 0, "reordered": 0,
            "foreign": 0, "timeouts": 0, "late": 0,
        },
        "counters": [{ "name": "published", "value": count }, { "name": "deliveries_due", "value": count }],
        "notes": ["This is a model: nothing was measured."],
    });
    let mut report: Report = serde_json::from_value(report).expect("the model has every field of a report");
    report.rows = rows;
    report.stalls = Some(stalls);
    report
}

/// Calls per second of two brokers, by calls in flight.
fn sweep(kind: SeriesKind) -> Plot {
    let depths = ["1", "2", "4", "8", "16", "32", "64", "128", "256"];
    let series = [("one broker", 9_000.0, 210_000.0), ("another broker", 7_000.0, 96_000.0)];
    let series = series.into_iter().enumerate().map(|(style, (name, single, most))| {
        let points = (0..depths.len()).map(|at| {
            let depth = 2f64.powi(at as i32);
            let value = single * depth / (1.0 + single * depth / most);
            Point { x: at as f64, y: Some(value), range: Some((value * 0.93, value * 1.05)) }
        });
        Series { name: name.to_owned(), style, kind, points: points.collect() }
    });
    Plot {
        title: "Calls a second by calls in flight".to_owned(),
        x: Axis::new("calls in flight", Scale::Names(depths.map(str::to_owned).to_vec()), Unit::Number),
        y: Axis::new("calls/s", Scale::Linear, Unit::Number),
        series: series.collect(),
    }
}
