//! Brokers whose connections break, for good or until they are re-opened.

use std::thread::scope;

use imori_bench::{Outcome, Report};

use crate::liar::{Breaking, Habits, Liar, Lie};
use crate::{run, total};

fn dies_at(number: u64) -> Liar {
    Liar::with(Habits { breaking: Breaking::All(number), ..Habits::default() })
}

#[test]
fn a_run_whose_broker_dies_keeps_what_it_has() {
    let rows = [
        ("rpc --requests 1M --warmup 0 --requesters 3 --depth 4", 1),
        ("rpc --requests 1M --warmup 0 --requesters 2 --independent", 1),
        ("rpc --rate 2000 --time 60s --warmup 0 --threads 2", 1),
        ("pubsub --closed --messages 1M --warmup 0 --window 50 --subscribers 2", 2),
        ("pubsub --rate 2000 --time 60s --warmup 0 --subscribers 2 --threads 2", 2),
        ("queue --closed --messages 1M --warmup 0 --confirm 8 --ack client", 1),
        ("fan-out --rate 2000 --time 60s --warmup 0 --subscribers 4", 4),
    ];
    scope(|scope| {
        for (arguments, fan_out) in rows {
            scope.spawn(move || {
                let report = run(&dies_at(500).url(), arguments);
                let ledger = report.ledger;
                assert!(ledger.sent > 0 && ledger.good > 0, "{arguments}: {ledger:?}");
                assert_eq!(ledger.good + ledger.unknown, ledger.sent * fan_out, "{arguments}: {ledger:?}");
                assert_eq!((ledger.lost, ledger.is_broken()), (0, false), "{arguments}");
                assert!(total(&report, |row| row.delivered) > 0, "{arguments}: the rows are kept");
                check_is_told(&report, arguments);
            });
        }
    });
}

#[test]
fn a_broker_may_die_in_any_phase() {
    for (arguments, number) in [
        ("rpc --requests 1k --warmup 10k", 500),
        ("rpc --rate 1000 --time 10s --warmup 60s", 50),
        ("pubsub --rate 1000 --time 10s --warmup 60s", 50),
        ("queue --closed --messages 1k --warmup 10k", 500),
        ("queue --closed --messages 1M --phase fill-drain", 500),
        ("soak --rate 1000 --time 60s --warmup 0 --connections 1", 300),
    ] {
        check_is_told(&run(&dies_at(number).url(), arguments), arguments);
    }
}

#[test]
fn a_search_whose_broker_dies_keeps_its_steps() {
    let search = "pubsub --rate find --arrival fixed --slo lost=0 --warmup 1ms --find-step 1s";
    let report = run(&dies_at(1_500).url(), search);
    assert_eq!(report.steps.iter().map(|step| step.rate).collect::<Vec<_>>(), [1_000.0]);
    assert!(report.notes.iter().any(|note| note.starts_with("the search ended at 2000 a second")));
    check_is_told(&report, search);
}

fn check_is_told(report: &Report, arguments: &str) {
    assert_eq!((report.outcome, report.exit_code()), (Outcome::Broken, 1), "{arguments}");
    let closed = "the broker closed a connection during the run; look into its log";
    let told = report.notes.iter().filter(|note| *note == closed).count();
    assert_eq!(told, 1, "{arguments}: {:?}", report.notes);
}

#[test]
fn what_is_confirmed_and_dropped_is_lost_and_the_rest_of_a_broken_connection_unknown() {
    let rows = [
        "pubsub --closed --messages 3k --warmup 0 --confirm 8",
        "pubsub --closed --messages 3k --warmup 0 --confirm 8 --threads 2",
        "pubsub --rate 3000 --arrival fixed --time 1s --warmup 0 --confirm 400",
    ];
    scope(|scope| {
        for arguments in rows {
            scope.spawn(move || {
                let (liar, report) = reconnecting(700, arguments);
                let (ledger, deeds) = (report.ledger, liar.deeds());
                // A rate has one message at the start of the time, and may have one at its end.
                assert!((3_000..=3_001).contains(&ledger.sent), "{arguments}: {ledger:?}");
                assert_eq!(
                    ledger.good + ledger.lost + ledger.unknown,
                    ledger.sent,
                    "{arguments}: {ledger:?}"
                );
                assert_eq!(ledger.lost, deeds.lies, "{arguments}: {ledger:?}");
                assert!(
                    deeds.lies >= 20 && ledger.unknown >= deeds.breaks,
                    "{arguments}: {ledger:?} {deeds:?}"
                );
                assert_eq!(total(&report, |row| row.reconnects), deeds.breaks, "{arguments}");
                assert!(deeds.breaks >= 3, "{arguments}: {deeds:?}");
                assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 3), "{arguments}");
            });
        }
    });
}

#[test]
fn without_confirms_a_broken_connection_leaves_all_that_is_missing_unknown() {
    let (liar, report) = reconnecting(700, "pubsub --closed --messages 3k --warmup 0 --window 10");
    let (ledger, deeds) = (report.ledger, liar.deeds());
    assert_eq!((ledger.lost, ledger.good + ledger.unknown), (0, 3_000), "{ledger:?}");
    assert!(ledger.unknown >= deeds.lies + deeds.breaks, "{ledger:?} {deeds:?}");
    assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 0));
}

#[test]
fn what_broke_in_the_warm_up_is_not_called_lost() {
    let (liar, report) = reconnecting(700, "pubsub --closed --messages 300 --warmup 1k --confirm 8");
    let (ledger, deeds) = (report.ledger, liar.deeds());
    assert_eq!((deeds.breaks, total(&report, |row| row.reconnects)), (1, 0));
    assert_eq!(ledger.lost, deeds.lies, "{ledger:?}");
    assert!(ledger.unknown > 0 && ledger.good + ledger.lost + ledger.unknown == 1_300, "{ledger:?}");
}

#[test]
fn calls_on_a_broken_connection_are_unknown() {
    for arguments in [
        "rpc --requests 1k --warmup 0 --requesters 2 --depth 8",
        "rpc --requests 1k --warmup 0 --requesters 2 --independent",
        "rpc --rate 2000 --arrival fixed --time 500ms --warmup 0 --requesters 2",
    ] {
        let habits = Habits { about: "/queue/", breaking: Breaking::Sender(300), ..Habits::default() };
        let liar = Liar::with(habits);
        let report = run(&liar.url(), &format!("{arguments} --reconnect"));
        let (ledger, breaks) = (report.ledger, liar.deeds().breaks);
        assert_eq!((ledger.sent, ledger.good + ledger.unknown), (1_000, 1_000), "{arguments}: {ledger:?}");
        assert!(breaks >= 2 && ledger.unknown >= breaks, "{arguments}: {ledger:?}");
        assert_eq!(total(&report, |row| row.reconnects), breaks, "{arguments}");
        assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 0), "{arguments}");
    }
}

/// A run against a broker that loses every 100th delivery and breaks the publisher's connection at
/// every multiple of `at` messages.
fn reconnecting(at: u64, arguments: &str) -> (Liar, Report) {
    let habits = Habits {
        lie: Lie::Lose,
        about: "/topic/",
        one_in: 100,
        breaking: Breaking::Sender(at),
        ..Habits::default()
    };
    let liar = Liar::with(habits);
    let report = run(&liar.url(), &format!("{arguments} --reconnect"));
    (liar, report)
}
