//! Hand-made comparisons for tests.

use std::collections::HashMap;

use imori_bench::record::report::Report;
use serde_json::json;

use crate::versus::comparison::{Comparison, Job, PeerFacts, Settings, Turn};

/// A report of an RPC run with this throughput and client canary.
fn report(per_second: f64, canary_us: f64) -> Report {
    let latency = json!({"kind": "service", "samples": 10, "p50_us": 1e6 / per_second, "p99_us": null,
        "p999_us": null, "max_us": null});
    let json = json!({
        "format": 1, "tool": "0", "scenario": "rpc", "mode": "CLOSED lock-step", "depth": "1",
        "url": "stomp://h:1", "server": "s/1", "asked": {"level": "memory"}, "outcome": "done",
        "seconds": 1.0, "unit": "requests", "operations": 1, "per_second": per_second, "deliveries": 2,
        "deliveries_per_second": 2.0 * per_second, "latency": latency, "broker": null,
        "client": {"threads": 1, "cpus_allowed": null, "cpu_s": 1.0, "cpu_us_per_op": null, "rss_end": 1},
        "ledger": {"sent": 1, "good": 1, "lost": 0, "duplicated": 0, "redelivered": 0, "altered": 0,
            "reordered": 0, "foreign": 0, "timeouts": 0, "late": 0},
        "counters": [], "notes": [],
        "rows": [{"host": {"client_canary_max_us": canary_us}}],
    });
    serde_json::from_value(json).unwrap()
}

/// A comparison of peers with these throughputs and quiet canaries.
pub(crate) fn comparison(peers: &[(&str, &[f64])]) -> Comparison {
    with_canaries(peers, &HashMap::new())
}

/// A comparison of one turn, with each broker's CPU-seconds per million deliveries.
pub(crate) fn with_cpu(peers: &[(&str, f64)]) -> Comparison {
    let throughputs: Vec<(&str, &[f64])> = peers.iter().map(|(name, _)| (*name, &[10.0][..])).collect();
    let mut comparison = comparison(&throughputs);
    for (run, (_, cpu)) in comparison.runs.iter_mut().zip(peers) {
        let broker = json!({"pids": [1], "processes": 1, "threads": 1, "cpus_allowed": null, "cpu_s": 1.0,
            "cpu_s_per_million_deliveries": cpu, "per_cpu_s": 1.0, "rss_start": 1, "rss_peak": 1, "rss_end": 1});
        run.report.broker = serde_json::from_value(broker).unwrap();
    }
    comparison
}

/// Like [`comparison`], with the client canary of some turns in microseconds.
pub(crate) fn with_canaries(peers: &[(&str, &[f64])], canaries: &HashMap<(&str, u32), f64>) -> Comparison {
    let facts = |name: &str| PeerFacts {
        name: name.to_owned(),
        protocol: "stomp".to_owned(),
        version: Some("1".to_owned()),
        sha256: None,
        configuration: Vec::new(),
    };
    let mut runs = Vec::new();
    for (name, values) in peers {
        for (turn, value) in (1..).zip(*values) {
            let canary = canaries.get(&(*name, turn)).copied().unwrap_or(100.0);
            let report = report(*value, canary);
            runs.push(Turn {
                peer: (*name).to_owned(),
                turn,
                job: "rpc".to_owned(),
                protocol: "stomp".to_owned(),
                exit_code: 0,
                report,
            });
        }
    }
    Comparison {
        format: 1,
        tool: "0".to_owned(),
        title: "rpc: a beside b".to_owned(),
        started_at: 0,
        settings: Settings {
            command: Vec::new(),
            rounds: peers.iter().map(|(_, values)| values.len() as u32).max().unwrap_or(0),
            jobs: vec![Job { name: "rpc".to_owned(), arguments: vec!["rpc".to_owned()] }],
            cpus_broker: None,
            cpus_client: None,
            load_before: String::new(),
        },
        peers: peers.iter().map(|(name, _)| facts(name)).collect(),
        left_out: Vec::new(),
        runs,
        failures: Vec::new(),
    }
}
