//! The load tool against a broker that lies: every lie must be counted exactly.

#![allow(clippy::unwrap_used, reason = "a test whose premises fail has failed")]

mod aims;
mod breaking;
mod confirms;
mod frame;
mod levels;
mod liar;
mod nats_liar;
mod open_loop;

use std::thread::scope;

use clap::Parser;
use imori_bench::{BenchArgs, Ledger, Outcome, Report, Second, Task};

use liar::{Liar, Lie};
use nats_liar::NatsLiar;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

/// Runs a scenario like the command line does.
fn run(url: &str, arguments: &str) -> Report {
    attempt(url, arguments).unwrap()
}

fn attempt(url: &str, arguments: &str) -> anyhow::Result<Report> {
    let arguments = format!("bench {arguments} --url {url}");
    match Command::parse_from(arguments.split_whitespace()).bench.task {
        Task::Scenario(scenario) => scenario.measure(),
        task => anyhow::bail!("{task:?} is no scenario"),
    }
}

/// Sums a column over the rows of a report.
fn total(report: &Report, of: impl Fn(&Second) -> u64) -> u64 {
    report.rows.iter().map(of).sum()
}

/// The value of a counter in a report.
fn counter(report: &Report, name: &str) -> Option<u64> {
    report.counters.iter().find(|count| count.name == name).map(|count| count.value)
}

#[test]
fn an_honest_broker_has_a_clean_ledger() {
    let rows = [
        ("rpc --requests 1k --warmup 100 --requesters 3 --responders 2", 1_100, 1_100),
        ("rpc --requests 1k --warmup 0 --depth 16 --threads 2 --reply named", 1_000, 1_000),
        ("rpc --requests 5k --warmup 10 --depth all", 5_010, 5_010),
        ("rpc --time 300ms --warmup 50ms --depth 4 --requesters 2", 0, 0),
        ("queue --closed --messages 1k --warmup 100 --publishers 4 --consumers 3 --queues 2", 1_100, 1_100),
        (
            "queue --closed --messages 1k --ack client-individual --prefetch 10 --window 20 --warmup 0",
            1_000,
            1_000,
        ),
        ("queue --closed --messages 1k --phase fill-drain --ack client", 1_000, 1_000),
        ("pubsub --closed --messages 1k --warmup 0 --subscribers 10 --window 50 --threads 2", 1_000, 10_000),
        ("pubsub --closed --time 300ms --warmup 50ms --publishers 2 --subscribers 2", 0, 0),
    ];
    scope(|scope| {
        for (arguments, sent, good) in rows {
            scope.spawn(move || {
                let report = run(&Liar::start(Lie::None, "/", 0).url(), arguments);
                check_clean(&report, arguments, sent, good);
            });
        }
    });
}

#[test]
fn an_honest_nats_server_has_a_clean_ledger() {
    let rows = [
        ("rpc --requests 1k --warmup 100 --requesters 3 --responders 2", 1_100, 1_100),
        ("rpc --requests 1k --warmup 100 --requesters 3 --independent", 1_100, 1_100),
        ("rpc --time 300ms --warmup 50ms --requesters 2 --independent", 0, 0),
        ("rpc --requests 5k --warmup 10 --depth all --threads 2", 5_010, 5_010),
        ("pubsub --closed --messages 1k --warmup 0 --subscribers 10 --window 50 --threads 2", 1_000, 10_000),
        (
            "pubsub --closed --messages 1k --warmup 0 --publishers 4 --subjects 2 --subscribers 3",
            1_000,
            3_000,
        ),
    ];
    scope(|scope| {
        for (arguments, sent, good) in rows {
            scope.spawn(move || {
                let report = run(&NatsLiar::start(Lie::None, "", 0).url(), arguments);
                check_clean(&report, arguments, sent, good);
            });
        }
    });
}

/// Checks for a clean ledger; `sent` is 0 if the number of operations is not fixed.
fn check_clean(report: &Report, arguments: &str, sent: u64, good: u64) {
    let ledger = report.ledger;
    assert!(ledger.sent > 0 && report.outcome == Outcome::Done && report.exit_code() == 0, "{arguments}");
    if sent > 0 {
        assert_eq!(ledger, Ledger { sent, good, ..Ledger::default() }, "{arguments}");
    }
}

#[test]
fn each_lie_about_a_reply_is_counted() {
    let clean = Ledger { sent: 2_000, good: 1_980, ..Ledger::default() };
    for (lie, expected) in [
        (Lie::Lose, Ledger { lost: 20, timeouts: 20, ..clean }),
        (Lie::Repeat, Ledger { good: 2_000, duplicated: 20, ..clean }),
        (Lie::Alter, Ledger { altered: 20, ..clean }),
        (Lie::Disguise, Ledger { lost: 20, timeouts: 20, foreign: 20, ..clean }),
    ] {
        // In parallel, because each run waits for its lost replies.
        scope(|scope| {
            for depth in ["--requesters 4 --depth 8", "--requesters 2 --depth 64 --threads 2"] {
                let arguments = format!("rpc --requests 2k --warmup 0 --timeout 2s {depth}");
                let of_nats = arguments.clone();
                scope.spawn(move || {
                    let liar = Liar::start(lie, "/reply-queue/", 100);
                    let report = run(&liar.url(), &arguments);
                    assert_eq!((report.ledger, report.exit_code()), (expected, 3), "{lie:?} {depth}");
                    assert_eq!(liar.lies(), 20);
                });
                scope.spawn(move || {
                    let liar = NatsLiar::start(lie, "_INBOX.", 100);
                    let report = run(&liar.url(), &of_nats);
                    assert_eq!((report.ledger, report.exit_code()), (expected, 3), "nats {lie:?} {depth}");
                    assert_eq!(liar.lies(), 20);
                });
            }
        });
    }
}

#[test]
fn each_lie_about_a_delivery_is_counted() {
    let clean = Ledger { sent: 1_000, good: 1_980, ..Ledger::default() };
    for (lie, expected) in [
        (Lie::Lose, Ledger { lost: 20, ..clean }),
        (Lie::Repeat, Ledger { good: 2_000, duplicated: 20, ..clean }),
        (Lie::Alter, Ledger { altered: 20, ..clean }),
        (Lie::Disguise, Ledger { altered: 20, ..clean }),
    ] {
        // In parallel, because each run waits for its lost deliveries.
        scope(|scope| {
            for size in [16, 100] {
                let arguments = format!(
                    "pubsub --closed --messages 1k --warmup 0 --subscribers 2 --window 100 --size {size}"
                );
                let of_nats = arguments.clone();
                scope.spawn(move || {
                    let liar = Liar::start(lie, "/topic/", 100);
                    let report = run(&liar.url(), &arguments);
                    assert_eq!((report.ledger, report.exit_code()), (expected, 3), "{lie:?} {size}");
                    assert_eq!(liar.lies(), 20);
                });
                scope.spawn(move || {
                    let liar = NatsLiar::start(lie, "imori-bench", 100);
                    let report = run(&liar.url(), &of_nats);
                    assert_eq!((report.ledger, report.exit_code()), (expected, 3), "nats {lie:?} {size}");
                    assert_eq!(liar.lies(), 20);
                });
            }
        });
    }
}

#[test]
fn idle_connections_stay_open() {
    for url in [Liar::start(Lie::None, "/", 0).url(), NatsLiar::start(Lie::None, "", 0).url()] {
        let report = run(&url, "idle --connections 20 --hold 50ms");
        let open = report.counters.iter().find(|count| count.name == "still_open");
        assert_eq!(open.map(|count| count.value), Some(20), "{url}");
    }
}

#[test]
fn what_nats_has_not_is_refused() {
    let url = NatsLiar::start(Lie::None, "", 0).url();
    for (arguments, told) in [
        ("queue --closed", "keeps no messages"),
        ("pubsub --closed --ack client", "no acknowledgement"),
        ("pubsub --closed --prefetch 1", "no credit"),
        ("rpc --reply named", "inboxes only"),
    ] {
        let error = attempt(&url, arguments).unwrap_err().to_string();
        assert!(error.contains(told), "{arguments}: {error}");
    }
}
