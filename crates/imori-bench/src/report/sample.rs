//! A report for tests: a minute of an open loop in which the broker stalls every ten seconds.

use serde_json::json;

use crate::record::report::Report;
use crate::record::series::{BrokerSecond, HostSecond, Period, Second, Stall, Stalls, Verdict};

/// Text that a page must escape.
pub(crate) const HOSTILE: &str = "</title></style><script>alert('x')</script>\" onload=\"x\u{202e}\0&";

/// The report.
pub(crate) fn report() -> Report {
    let mut report: Report = serde_json::from_value(json!({
        "format": 1,
        "tool": "0.1.0",
        "scenario": "queue",
        "mode": "open 1000/s poisson",
        "depth": null,
        "command": ["imori-bench", "queue", "nats://127.0.0.1:4222", "--rate", "1000"],
        "seed": 7,
        "started_at": 1_767_225_599,
        "machine": { "cpu": "a model", "cpus": 2, "memory_bytes": 8_000_000_000_u64, "kernel": "6.1", "system": "Debian" },
        "open": { "rate": 1_000.0, "arrival": "poisson" },
        "url": "nats://127.0.0.1:4222",
        "server": "imori 0.1.0",
        "asked": { "level": "memory", "size": 128 },
        "outcome": "done",
        "seconds": 60.0,
        "unit": "deliveries",
        "operations": 60_000,
        "per_second": 1_000.0,
        "deliveries": 60_000,
        "deliveries_per_second": 1_000.0,
        "latency": { "kind": "service", "samples": 60_000, "p50_us": 200.0, "p99_us": 631_000.0, "p999_us": 964_000.0, "max_us": 1e6 },
        "service": { "kind": "service", "samples": 60_000, "p50_us": 190.0, "p99_us": 240.0, "p999_us": 1_000.0, "max_us": 1e6 },
        "curve": [[0.0, 100.0], [0.5, 200.0], [0.9, 230.0], [0.99, 631_000.0], [0.999, 964_000.0], [1.0, 1e6]],
        "service_curve": [[0.5, 190.0], [0.99, 240.0], [0.999, 1_000.0], [1.0, 1e6]],
        "broker": {
            "pids": [1], "processes": 1, "threads": 4, "cpus_allowed": "0-1", "context_switches": 90_000,
            "read_bytes": 0, "write_bytes": 12_345_678, "cpu_s": 3.5, "cpu_s_per_million_deliveries": 58.0,
            "per_cpu_s": 17_000.0, "rss_start": 20_000_000, "rss_peak": 30_000_000, "rss_end": 25_000_000,
        },
        "client": { "threads": 1, "cpus_allowed": "0-1", "cpu_s": 5.0, "cpu_us_per_op": 83.0, "rss_end": 9_000_000 },
        "ledger": {
            "sent": 60_000, "good": 60_000, "lost": 0, "duplicated": 0, "redelivered": 0, "altered": 0,
            "reordered": 0, "foreign": 0, "timeouts": 0, "late": 0,
        },
        "counters": [{ "name": "published", "value": 66_000 }],
        "notes": [],
    }))
    .unwrap();
    report.rows = (0..60).map(second).collect();
    report.stalls = Some(stalls());
    report
}

/// A report with text that tries to escape from its context everywhere.
pub(crate) fn hostile() -> Report {
    let mut report = report();
    for text in [&mut report.mode, &mut report.url, &mut report.server] {
        *text = HOSTILE.to_owned();
    }
    report.scenario = HOSTILE.into();
    report.unit = HOSTILE.into();
    report.tool = HOSTILE.into();
    report.depth = Some(HOSTILE.to_owned());
    report.command = vec![HOSTILE.to_owned()];
    report.notes = vec![HOSTILE.to_owned()];
    report.asked.insert(HOSTILE.to_owned(), json!([HOSTILE]));
    report.machine.cpu = HOSTILE.to_owned();
    report.machine.file_system = Some(HOSTILE.to_owned());
    if let Some(open) = &mut report.open {
        open.arrival = HOSTILE.to_owned();
    }
    if let Some(stalls) = &mut report.stalls {
        stalls.no_period = Some(HOSTILE.to_owned());
        for stall in &mut stalls.list {
            stall.evidence = HOSTILE.to_owned();
        }
        if let Some(period) = &mut stalls.period {
            period.suspect = Some(HOSTILE.to_owned());
        }
    }
    report
}

fn second(t: u32) -> Second {
    let is_frozen = t % 10 == 5;
    let mut heat = vec![0; 37];
    heat[11] = if is_frozen { 10 } else { 990 };
    heat[12] = 8;
    if is_frozen {
        heat[20..30].fill(99);
    }
    Second {
        t,
        offered: 1_000,
        sent: 1_000,
        confirmed: 1_000,
        delivered: if is_frozen { 10 } else { 1_000 },
        in_flight: if is_frozen { 990 } else { 1 },
        p50_us: Some(200.0),
        p99_us: Some(240.0),
        p999_us: None,
        max_us: Some(if is_frozen { 1e6 } else { 300.0 }),
        send_lag_max_us: Some(90.0),
        client_cpu_s: 0.08,
        broker: Some(BrokerSecond {
            cpu_s: 0.06,
            rss_bytes: 25_000_000,
            context_switches: 1_500,
            ..BrokerSecond::default()
        }),
        host: Some(HostSecond {
            psi_cpu: Some(0.02),
            client_canary_max_us: Some(800.0),
            disk_canary_max_us: Some(8_000.0),
            ..HostSecond::default()
        }),
        heat,
        ..Second::default()
    }
}

fn stalls() -> Stalls {
    let list = (0..6)
        .map(|index| Stall {
            start_s: 5.0 + 10.0 * f64::from(index),
            length_s: 1.0,
            operations: 990,
            worst_us: 1e6,
            delay_s: 500.0,
            verdict: if index == 0 { Verdict::Disk } else { Verdict::Broker },
            evidence: "all canaries fine".to_owned(),
        })
        .collect();
    Stalls {
        threshold_us: 20_000.0,
        list,
        per_hour: vec![(Verdict::Disk, 60.0), (Verdict::Broker, 300.0)],
        longest_s: 1.0,
        available_at_50_ms: Some(0.906),
        period: Some(Period { period_s: 10.0, phase_s: 5.0, confidence: 0.99, cycles: 6, suspect: None }),
        ..Stalls::default()
    }
}
