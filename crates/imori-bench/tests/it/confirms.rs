//! Confirms of messages that are then lost, and confirms that never come.

use std::thread::scope;

use imori_bench::{Ledger, Outcome};

use crate::liar::{Confirming, Habits, Liar, Lie};
use crate::{counter, run};

#[test]
fn what_is_confirmed_and_dropped_is_lost() {
    let rows = [
        "pubsub --closed --messages 2k --warmup 0 --confirm 8 --publishers 2",
        "queue --closed --messages 2k --warmup 0 --confirm 8 --threads 2 --ack client",
        "queue --rate 4000 --arrival fixed --time 500ms --warmup 0 --confirm 100",
    ];
    scope(|scope| {
        for arguments in rows {
            scope.spawn(move || {
                let about = if arguments.starts_with("queue") { "/queue/" } else { "/topic/" };
                let liar = Liar::start(Lie::Lose, about, 100);
                let report = run(&liar.url(), arguments);
                let expected = Ledger { sent: 2_000, good: 1_980, lost: 20, ..Ledger::default() };
                assert_eq!((report.ledger, liar.lies()), (expected, 20), "{arguments}");
                assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 3), "{arguments}");
                assert_eq!(report.confirm.unwrap().samples, 2_000, "{arguments}");
            });
        }
    });
}

#[test]
fn confirms_may_come_out_of_order() {
    for arguments in [
        "pubsub --closed --messages 2k --warmup 0 --confirm 8",
        "queue --rate 4000 --arrival fixed --time 500ms --warmup 0 --confirm 2",
    ] {
        let liar = Liar::with(Habits { confirming: Confirming::Swapped, ..Habits::default() });
        let report = run(&liar.url(), arguments);
        let expected = Ledger { sent: 2_000, good: 2_000, ..Ledger::default() };
        assert_eq!((report.ledger, report.exit_code()), (expected, 0), "{arguments}");
        assert_eq!(report.confirm.as_ref().map(|confirm| confirm.samples), Some(2_000), "{arguments}");
        assert_eq!(counter(&report, "unconfirmed"), Some(0), "{arguments}");
    }
}

#[test]
fn a_run_that_is_never_confirmed_ends_as_blocked() {
    // In parallel, because each run waits until nothing has moved for ten seconds.
    scope(|scope| {
        for (arguments, sent, unsent) in [
            ("pubsub --closed --messages 1k --warmup 0 --confirm 4", 4, 0),
            ("queue --rate 1000 --arrival fixed --time 200ms --warmup 0 --confirm 4", 4, 196),
            ("pubsub --rate 1000 --arrival fixed --time 200ms --warmup 0 --confirm 200", 200, 0),
        ] {
            scope.spawn(move || {
                let liar = Liar::with(Habits { confirming: Confirming::Never, ..Habits::default() });
                let report = run(&liar.url(), arguments);
                let ledger = Ledger { sent, good: sent, ..Ledger::default() };
                assert_eq!((report.outcome, report.ledger), (Outcome::Blocked, ledger), "{arguments}");
                assert_eq!(report.exit_code(), 4, "{arguments}");
                assert_eq!(counter(&report, "unconfirmed"), Some(sent), "{arguments}");
                let notes = report.notes.join("\n");
                assert!(notes.contains(&format!("never confirmed {sent} of {sent} messages")), "{notes}");
                let is_told = notes.contains(&format!("{unsent} operations were due and never sent"));
                assert_eq!(is_told, unsent > 0, "{notes}");
            });
        }
    });
}
