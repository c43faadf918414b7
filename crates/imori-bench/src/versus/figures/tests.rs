//! Comparisons made by hand, and what may be told of them.

use std::collections::HashMap;

use serde_json::json;

use super::*;
use crate::versus::comparison::{Job, PeerFacts, Settings, Turn};

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

/// A comparison of peers with these throughputs, a canary in front of those that are not quiet.
pub(crate) fn comparison(peers: &[(&str, &[f64])]) -> Comparison {
    with_canaries(peers, &HashMap::new())
}

fn with_canaries(peers: &[(&str, &[f64])], canaries: &HashMap<(&str, u32), f64>) -> Comparison {
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
            runs.push(Turn { peer: (*name).to_owned(), turn, job: "rpc".to_owned(), exit_code: 0, report });
        }
    }
    Comparison {
        format: 1,
        tool: "0".to_owned(),
        title: "rpc: a beside b".to_owned(),
        started_at: 0,
        settings: Settings {
            command: Vec::new(),
            rounds: 5,
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

#[test]
fn a_spread_is_the_median_with_its_range_and_the_scatter_of_the_middle_half() {
    for (values, median, low, high, scatter) in [
        (&[3.0][..], 3.0, 3.0, 3.0, 0.0),
        (&[90.0, 110.0], 100.0, 90.0, 110.0, 0.2),
        (&[100.0, 1.0, 101.0, 99.0, 500.0], 100.0, 1.0, 500.0, 0.02),
        (&[0.0, 0.0], 0.0, 0.0, 0.0, 0.0),
        (&[-3.0, -1.0], -2.0, -3.0, -1.0, 1.0),
    ] {
        let expected = Spread { median, low, high, count: values.len(), scatter };
        assert_eq!(spread(values.iter().copied()), Some(expected), "{values:?}");
    }
    assert_eq!(spread([]), None);
}

#[test]
fn a_difference_is_told_only_if_the_turns_agree() {
    for (a, b, better, doubts) in [
        (&[100.0, 101.0, 102.0][..], &[200.0, 201.0, 199.0][..], Some("b"), 0),
        (&[200.0, 201.0], &[100.0, 101.0], Some("a"), 0),
        (&[100.0, 102.0], &[101.0, 103.0], None, 0),
        (&[100.0, 150.0], &[300.0, 301.0], Some("b"), 1),
        (&[100.0, 150.0], &[120.0, 190.0], None, 2),
        (&[100.0], &[200.0], Some("b"), 2),
    ] {
        let comparison = comparison(&[("a", a), ("b", b)]);
        let pair = pair(&comparison, "rpc", "a", "b").unwrap();
        assert_eq!((pair.always_better.as_deref(), pair.doubts.len()), (better, doubts), "{a:?} {b:?}");
    }
}

#[test]
fn differences_are_of_the_same_turn() {
    let mut comparison = comparison(&[("a", &[10.0, 20.0, 30.0]), ("b", &[11.0, 23.0, 36.0])]);
    let pair_before = pair(&comparison, "rpc", "a", "b").unwrap().difference;
    assert_eq!((pair_before.median, pair_before.low, pair_before.high), (3.0, 1.0, 6.0));
    comparison.runs.retain(|run| run.peer != "a" || run.turn != 2);
    let pair_after = pair(&comparison, "rpc", "a", "b").unwrap().difference;
    assert_eq!((pair_after.count, pair_after.low, pair_after.high), (2, 1.0, 6.0));
}

#[test]
fn a_run_that_lost_something_does_not_count() {
    let mut comparison = comparison(&[("a", &[10.0, 1_000.0])]);
    comparison.runs[1].report.ledger.lost = 1;
    assert_eq!(values(&comparison, "a", "rpc", &FIGURES[0]), [(1, 10.0)]);
    assert_eq!(comparison.exit_code(), 3);
}

#[test]
fn a_machine_that_was_busier_in_some_turns_is_a_doubt() {
    for (canary_us, doubts) in [(900.0, 0), (1_900.0, 0), (2_100.0, 1)] {
        let canaries = HashMap::from([(("b", 2), canary_us)]);
        let sides: [(&str, &[f64]); 2] = [("a", &[10.0, 10.0]), ("b", &[20.0, 20.0])];
        let comparison = with_canaries(&sides, &canaries);
        let pair = pair(&comparison, "rpc", "a", "b").unwrap();
        assert_eq!(pair.doubts.len(), doubts, "{:?}", pair.doubts);
    }
}
