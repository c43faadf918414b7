//! Peers without a broker that lie: each lie is counted exactly.

#![allow(clippy::unwrap_used, reason = "a test whose premises fail has failed")]

mod peer_liar;

use clap::Parser;
use imori_bench::{BenchArgs, Ledger, Outcome, Report, Task, driver};

use peer_liar::{Lie, PeerLiar, STREAMS_MAX, Speaks};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Runs a scenario as the command line would.
fn run(url: &str, arguments: &str) -> Report {
    attempt(url, arguments).unwrap()
}

fn attempt(url: &str, arguments: &str) -> anyhow::Result<Report> {
    driver::bring(&imori_brokerless::PROTOCOLS);
    let arguments = format!("brokerless {arguments} --url {url}");
    match Command::try_parse_from(arguments.split_whitespace())?.bench.task {
        Task::Scenario(scenario) => scenario.measure(),
        task => anyhow::bail!("{task:?} is no scenario"),
    }
}

/// Checks a clean end; with 0 sent it may have been any number.
fn check_clean(report: &Report, arguments: &str, sent: u64, good: u64) {
    let ledger = report.ledger;
    assert!(ledger.sent > 0 && report.outcome == Outcome::Done && report.exit_code() == 0, "{arguments}");
    if sent > 0 {
        assert_eq!(ledger, Ledger { sent, good, ..Ledger::default() }, "{arguments}");
    }
}

#[test]
fn an_honest_peer_without_a_broker_has_a_clean_ledger() {
    for (speaks, arguments, sent) in [
        (Speaks::Rep, "rpc --requests 1k --warmup 100 --requesters 3", 1_100),
        (Speaks::Rep, "rpc --rate 2000 --time 300ms --warmup 50ms", 0),
        (Speaks::Router, "rpc --requests 1k --warmup 100 --requesters 3 --depth 8 --independent", 1_100),
        (Speaks::Router, "rpc --requests 5k --warmup 10 --depth all --threads 2", 5_010),
        (Speaks::Grpc, "rpc --requests 1k --warmup 100 --requesters 3", 1_100),
        (Speaks::Grpc, "rpc --requests 2k --warmup 0 --depth 64 --threads 2", 2_000),
        (Speaks::Grpc, "rpc --rate 2000 --time 300ms --warmup 50ms --requesters 2", 0),
    ] {
        let peer = PeerLiar::start(speaks, Lie::None, 0);
        let report = run(&peer.url(), arguments);
        check_clean(&report, arguments, sent, sent);
        assert!(report.counters.iter().all(|count| count.name != "requests_received"));
    }
}

#[test]
fn streams_and_window_of_a_peer_are_kept() {
    let peer = PeerLiar::start(Speaks::Grpc, Lie::None, 0);
    let report = run(&peer.url(), "rpc --requests 2k --warmup 0 --depth 64 --size 120");
    check_clean(&report, "depth 64", 2_000, 2_000);
    let (calls_max, window_min) = peer.seen();
    assert_eq!(calls_max, STREAMS_MAX);
    assert!(window_min < 1_000, "2,000 calls of 125 bytes have used it up, and {window_min} were left");
}

#[test]
fn each_lie_of_a_peer_without_a_broker_is_counted() {
    let clean = Ledger { sent: 2_000, good: 1_980, ..Ledger::default() };
    for (lie, expected) in [
        (Lie::Lose, Ledger { lost: 20, timeouts: 20, ..clean }),
        (Lie::Repeat, Ledger { good: 2_000, duplicated: 20, ..clean }),
        (Lie::Alter, Ledger { altered: 20, ..clean }),
        (Lie::Disguise, Ledger { lost: 20, timeouts: 20, foreign: 20, ..clean }),
    ] {
        for (speaks, depth) in
            [(Speaks::Router, "--requesters 4 --depth 8"), (Speaks::Grpc, "--requesters 20")]
        {
            // HTTP/2 has no reply to a call that has ended or has not begun.
            if speaks == Speaks::Grpc && matches!(lie, Lie::Repeat | Lie::Disguise) {
                continue;
            }
            let peer = PeerLiar::start(speaks, lie, 100);
            let report = run(&peer.url(), &format!("rpc --requests 2k --warmup 0 --timeout 1s {depth}"));
            assert_eq!((report.ledger, report.exit_code()), (expected, 3), "{speaks:?} {lie:?}");
            assert_eq!(peer.lies(), 20);
        }
    }
}

#[test]
fn http2_keeps_replies_from_the_ledger_that_no_call_waits_for() {
    let arguments = "rpc --requests 2k --warmup 0 --requesters 20";
    let peer = PeerLiar::start(Speaks::Grpc, Lie::Repeat, 100);
    check_clean(&run(&peer.url(), arguments), arguments, 2_000, 2_000);
    let peer = PeerLiar::start(Speaks::Grpc, Lie::Disguise, 100);
    let report = run(&peer.url(), arguments);
    assert!(report.outcome != Outcome::Done && report.ledger.good < 2_000, "{:?}", report.outcome);
}

#[test]
fn what_a_peer_without_a_broker_has_not_is_refused() {
    for (speaks, arguments, told) in [
        (Speaks::Rep, "queue --closed", "nobody keeps messages"),
        (Speaks::Rep, "pubsub --closed", "use `rpc`"),
        (Speaks::Grpc, "pubsub --closed", "use `rpc`"),
        (Speaks::Rep, "rpc --depth 2", "one call in flight"),
        (Speaks::Router, "rpc --destination a", "leave `--destination` out"),
        (Speaks::Grpc, "rpc --depth all", "use a number for `--depth`"),
    ] {
        let error = attempt(&PeerLiar::start(speaks, Lie::None, 0).url(), arguments).unwrap_err().to_string();
        assert!(error.contains(told), "{arguments}: {error}");
    }
}

#[test]
fn a_url_that_a_peer_has_no_place_for_is_refused() {
    for (url, told) in [
        ("zmq-router://127.0.0.1:1/v", "a socket has no place `v`"),
        ("grpc://127.0.0.1:1/C", "`C` is no method of gRPC"),
        ("grpc://127.0.0.1", "names no port"),
        ("zmq-rep://u:p@127.0.0.1:1", "names a user"),
    ] {
        let error = attempt(url, "rpc --requests 1").unwrap_err().to_string();
        assert!(error.contains(told), "{url}: {error}");
    }
}
