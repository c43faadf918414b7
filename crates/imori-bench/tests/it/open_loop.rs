//! The open loop follows its schedule, and its ledger is as exact as in a closed loop.

use std::thread::scope;

use imori_bench::{Ledger, Outcome, Report};

use crate::liar::{Liar, Lie};
use crate::nats_liar::NatsLiar;
use crate::{counter, run, total};

/// 1,000 operations per second, for 0.1 s of warm-up and 0.3 s of measuring.
const LOAD: &str = "--rate 1000 --warmup 100ms --time 300ms";
const SENT: u64 = 400;
const OFFERED: u64 = 300;

#[test]
fn an_open_loop_offers_what_its_schedule_has() {
    let rows = [
        ("rpc --arrival fixed --requesters 4 --responders 2", 1),
        ("rpc --arrival fixed --requesters 4 --independent", 1),
        ("rpc --arrival burst:50 --threads 2 --max-in-flight 7", 1),
        ("pubsub --arrival fixed --publishers 4 --subscribers 3", 3),
        ("pubsub --arrival burst:50 --subscribers 2 --threads 2 --max-in-flight 7", 2),
        ("fan-out --arrival fixed --subscribers 5", 5),
    ];
    scope(|scope| {
        for (arguments, fan_out) in rows {
            scope.spawn(move || {
                let arguments = format!("{arguments} {LOAD}");
                check_schedule(&run(&Liar::start(Lie::None, "/", 0).url(), &arguments), &arguments, fan_out);
                check_schedule(
                    &run(&NatsLiar::start(Lie::None, "", 0).url(), &arguments),
                    &arguments,
                    fan_out,
                );
            });
        }
    });
    let queues = "--publishers 4 --consumers 2 --queues 2 --ack client-individual --confirm 3";
    let arguments = format!("queue --arrival fixed {queues} {LOAD}");
    let report = run(&Liar::start(Lie::None, "/", 0).url(), &arguments);
    check_schedule(&report, &arguments, 1);
    assert_eq!(report.confirm.as_ref().map(|confirm| confirm.samples), Some(OFFERED));
    assert_eq!(total(&report, |row| row.confirmed), OFFERED);
}

fn check_schedule(report: &Report, arguments: &str, fan_out: u64) {
    let expected = Ledger { sent: SENT, good: SENT * fan_out, ..Ledger::default() };
    assert_eq!((report.outcome, report.ledger), (Outcome::Done, expected), "{arguments}");
    assert_eq!(report.exit_code(), 0, "{arguments}");
    let counted = [
        total(report, |row| row.offered),
        total(report, |row| row.sent),
        total(report, |row| row.delivered) / fan_out,
    ];
    assert_eq!(counted, [OFFERED; 3], "offered, sent and delivered of {arguments}");
    let samples = [&report.latency, &report.service].map(|times| times.as_ref().unwrap().samples);
    assert_eq!(samples, [OFFERED * fan_out; 2], "{arguments}");
    assert_eq!(report.open.as_ref().map(|open| open.rate), Some(1_000.0), "{arguments}");
}

#[test]
fn the_same_seed_offers_the_same() {
    let offered = |seed| {
        let arguments = format!("pubsub --seed {seed} --publishers 2 {LOAD}");
        let report = run(&NatsLiar::start(Lie::None, "", 0).url(), &arguments);
        assert_eq!((report.outcome, report.ledger.good), (Outcome::Done, report.ledger.sent));
        (report.ledger.sent, total(&report, |row| row.offered))
    };
    assert_eq!(offered(7), offered(7));
}

#[test]
fn each_lie_is_counted_in_an_open_loop_too() {
    let load = "--rate 2000 --arrival fixed --warmup 0 --time 500ms";
    let rpc = format!("rpc --requesters 2 --timeout 5s {load}");
    let pubsub = format!("pubsub --subscribers 2 {load}");
    let calls = Ledger { sent: 1_000, good: 990, ..Ledger::default() };
    let deliveries = Ledger { sent: 1_000, good: 1_980, ..Ledger::default() };
    let rows = [
        (Lie::Lose, Ledger { lost: 10, timeouts: 10, ..calls }, Ledger { lost: 20, ..deliveries }),
        (
            Lie::Repeat,
            Ledger { good: 1_000, duplicated: 10, ..calls },
            Ledger { good: 2_000, duplicated: 20, ..deliveries },
        ),
        (Lie::Alter, Ledger { altered: 10, ..calls }, Ledger { altered: 20, ..deliveries }),
        (
            Lie::Disguise,
            Ledger { lost: 10, timeouts: 10, foreign: 10, ..calls },
            Ledger { altered: 20, ..deliveries },
        ),
    ];
    let check = |url: String, arguments: &str, lie: Lie, ledger: Ledger| {
        let report = run(&url, arguments);
        assert_eq!((report.ledger, report.exit_code()), (ledger, 3), "{lie:?} {url} {arguments}");
    };
    scope(|scope| {
        for (lie, of_calls, of_deliveries) in rows {
            let (rpc, pubsub) = (&rpc, &pubsub);
            scope.spawn(move || check(Liar::start(lie, "/reply-queue/", 100).url(), rpc, lie, of_calls));
            scope.spawn(move || check(NatsLiar::start(lie, "_INBOX.", 100).url(), rpc, lie, of_calls));
            scope.spawn(move || check(Liar::start(lie, "/topic/", 100).url(), pubsub, lie, of_deliveries));
            scope.spawn(move || {
                check(NatsLiar::start(lie, "imori-bench", 100).url(), pubsub, lie, of_deliveries);
            });
        }
    });
}

#[test]
fn the_spread_of_a_fan_out_is_over_its_subscribers() {
    for url in [Liar::start(Lie::None, "/", 0).url(), NatsLiar::start(Lie::None, "", 0).url()] {
        let report = run(&url, &format!("fan-out --arrival fixed --subscribers 9 {LOAD}"));
        let spread: Vec<_> =
            report.spread.iter().map(|(name, times)| (name.as_str(), times.samples)).collect();
        let names = ["first subscriber", "middle subscriber", "last subscriber"];
        assert_eq!(spread, names.map(|name| (name, OFFERED)), "{url}");
        let max: Vec<_> = report.spread.iter().map(|(_, times)| times.max_us).collect();
        assert!(max.is_sorted(), "each comes after the one before: {max:?}");
        assert_eq!(report.spread[2].1.max_us, report.latency.as_ref().unwrap().max_us);
    }
}

#[test]
fn a_soak_has_all_parts_that_the_protocol_has() {
    let arguments = "soak --rate 1000 --arrival fixed --connections 2 --warmup 100ms --time 403ms";
    let stomp = run(&Liar::start(Lie::None, "/", 0).url(), arguments);
    let nats = run(&NatsLiar::start(Lie::None, "", 0).url(), arguments);
    // The schedules end between two operations, which fixes the number of operations. Core NATS has
    // no queues, so the other parts share their rate.
    for (report, expected) in [
        (&stomp, &[("rpc", 202, 1), ("pubsub", 151, 1), ("fan-out", 51, 10), ("queue", 101, 1)][..]),
        (&nats, &[("rpc", 252, 1), ("pubsub", 189, 1), ("fan-out", 63, 10)][..]),
    ] {
        let parts: Vec<_> = report
            .parts
            .iter()
            .map(|part| (part.scenario.as_ref(), part.ledger.sent, part.ledger.good / part.ledger.sent))
            .collect();
        assert_eq!(parts, expected);
        let sent = expected.iter().map(|(_, sent, _)| sent).sum();
        let good = expected.iter().map(|(_, sent, fan_out)| sent * fan_out).sum();
        assert_eq!(report.ledger, Ledger { sent, good, ..Ledger::default() });
        assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 0));
        assert_eq!(report.open.as_ref().map(|open| open.rate), Some(1_000.0));
    }
    assert_eq!(counter(&stomp.parts[3], "unconfirmed"), Some(0), "queues are confirmed");
}
