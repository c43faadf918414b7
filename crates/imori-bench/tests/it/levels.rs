//! Levels of safety: the requested level, the broker's report, and the tool's judgement of both.

use std::thread::scope;

use imori_bench::{Ledger, Level, Levels, Outcome};

use crate::liar::{Confirming, Habits, Liar, Lie};
use crate::{attempt, counter, run};

const CONFIRMED: &str = "queue --closed --messages 1k --warmup 0 --confirm 8";

fn confirming(confirming: Confirming) -> Liar {
    Liar::with(Habits { confirming, ..Habits::default() })
}

#[test]
fn a_level_that_is_too_low_is_found_and_a_silent_broker_is_not_blamed() {
    let none = Levels::default();
    for (how, asked, expected, code) in [
        (Confirming::At("disk"), Level::Disk, Levels { disk: 1_000, ..none.clone() }, 0),
        (Confirming::At("disk"), Level::Os, Levels { disk: 1_000, ..none.clone() }, 0),
        (Confirming::At("os"), Level::Disk, Levels { os: 1_000, ..none.clone() }, 3),
        (Confirming::At("memory"), Level::Os, Levels { memory: 1_000, ..none.clone() }, 3),
        (Confirming::At("memory"), Level::Memory, Levels { memory: 1_000, ..none.clone() }, 0),
        (Confirming::Mostly("disk", 100, "os"), Level::Disk, Levels { disk: 990, os: 10, ..none.clone() }, 3),
        (Confirming::AtOnce, Level::Disk, Levels { unsaid: 1_000, ..none }, 0),
    ] {
        for threads in [1, 2] {
            let liar = confirming(how);
            let report =
                run(&liar.url(), &format!("{CONFIRMED} --level {} --threads {threads}", asked.name()));
            let expected = Levels { asked, ..expected.clone() };
            assert_eq!(report.levels, Some(expected), "{how:?} {asked:?}");
            let clean = Ledger { sent: 1_000, good: 1_000, ..Ledger::default() };
            assert_eq!((report.ledger, report.outcome), (clean, Outcome::Done));
            assert_eq!(report.exit_code(), code, "{how:?} {asked:?}");
            let notes = report.notes.join("\n");
            assert_eq!(notes.contains("at a lower level than"), code == 3, "{notes}");
        }
    }
}

#[test]
fn the_report_says_what_the_broker_said() {
    for (how, line) in [
        (Confirming::AtOnce, "level        disk (not said by the broker)  asked for: "),
        (Confirming::At("disk"), "level        disk (said by the broker: disk)  asked for: "),
        (Confirming::At("os"), "verdict      level broken: "),
    ] {
        let liar = confirming(how);
        let text = run(&liar.url(), &format!("{CONFIRMED} --level disk")).to_string();
        assert!(text.lines().any(|other| other.starts_with(line)), "`{line}` is missing from:\n{text}");
    }
}

#[test]
fn a_level_that_is_not_known_ends_the_run() {
    let liar = confirming(Confirming::At("moon"));
    let report = run(&liar.url(), &format!("{CONFIRMED} --level disk"));
    assert_eq!((report.outcome, report.exit_code()), (Outcome::Broken, 1));
    assert!(report.notes.join("\n").contains("at level `moon`"), "{:?}", report.notes);
}

#[test]
fn each_level_is_asked_for_in_its_words() {
    let persistent = "SEND persistent:true";
    for (arguments, said, unsaid) in [
        ("--level memory", &["SUBSCRIBE ack:auto"][..], &[persistent, "SUBSCRIBE x-level:os"][..]),
        ("--level disk --ack client", &["SUBSCRIBE ack:client"], &["SUBSCRIBE ack:client-individual"]),
        ("--level os", &[persistent, "SUBSCRIBE x-level:os", "SEND x-level:os"], &[]),
        (
            "--level disk",
            &[persistent, "SUBSCRIBE ack:client-individual"],
            &["SUBSCRIBE x-level:os", "SEND x-level:disk"],
        ),
        (
            "--level disk --queue-argument x-queue-type=quorum",
            &[persistent, "SUBSCRIBE x-queue-type:quorum", "SEND x-queue-type:quorum"],
            &[],
        ),
        (
            "--level disk --priorities 4 --expiration 1m",
            &["SEND priority:0", "SEND priority:3", "SUBSCRIBE x-max-priority:3", "SEND expiration:60000"],
            &["SEND priority:4"],
        ),
    ] {
        let liar = confirming(Confirming::AtOnce);
        let report = run(&liar.url(), &format!("{CONFIRMED} {arguments}"));
        assert_eq!(report.exit_code(), 0, "{arguments}: {report}");
        for line in said {
            assert!(liar.saw(line), "{arguments}: `{line}` was not sent");
        }
        for line in unsaid {
            assert!(!liar.saw(line), "{arguments}: `{line}` was sent");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let url = Liar::start(Lie::None, "/", 0).url();
    for (arguments, told) in [
        ("queue --closed --ack-order random", "use `--ack client-individual`"),
        ("queue --closed --expiration 90m", "messages cannot live for"),
        ("queue --closed --level disk --url nats://127.0.0.1:1", "keeps no messages"),
        ("soak --rate 10 --level disk --url nats://127.0.0.1:1", "keeps no messages"),
    ] {
        let arguments = match arguments.contains("--url") {
            true => arguments.to_owned(),
            false => format!("{arguments} --url {url}"),
        };
        let (arguments, url) = arguments.split_once(" --url ").unwrap();
        let error = attempt(url, arguments).unwrap_err().to_string();
        assert!(error.contains(told), "{arguments}: {error}");
    }
}

#[test]
fn a_queue_is_filled_with_confirms_and_drained_in_any_order_of_acknowledgement() {
    let rows = [
        "--confirm 16 --ack client-individual --ack-order random --prefetch 20",
        "--confirm 16 --ack-order random --priorities 10",
        "--ack client --priorities 2",
        "",
    ];
    scope(|scope| {
        for arguments in rows {
            scope.spawn(move || {
                let liar = confirming(Confirming::At("disk"));
                let arguments =
                    format!("queue --closed --messages 2k --phase fill-drain --level disk {arguments}");
                let report = run(&liar.url(), &arguments);
                let expected = Ledger { sent: 2_000, good: 2_000, ..Ledger::default() };
                assert_eq!((report.ledger, report.exit_code()), (expected, 0), "{arguments}");
                let confirmed = if arguments.contains("--confirm") { 2_000 } else { 1 };
                assert_eq!(report.levels.as_ref().map(|levels| levels.disk), Some(confirmed), "{arguments}");
                assert!(counter(&report, "fill_per_s").is_some_and(|rate| rate > 0), "{arguments}");
            });
        }
    });
}

#[test]
fn what_may_have_expired_is_not_lost_and_what_cannot_have_is() {
    for (expiration, expected) in [
        ("1ms", Ledger { sent: 1_000, good: 980, expired: 20, ..Ledger::default() }),
        ("50m", Ledger { sent: 1_000, good: 980, lost: 20, ..Ledger::default() }),
    ] {
        let liar = Liar::start(Lie::Lose, "/queue/", 50);
        let report = run(&liar.url(), &format!("{CONFIRMED} --expiration {expiration}"));
        assert_eq!((report.ledger, liar.lies()), (expected, 20), "{expiration}");
        assert_eq!(counter(&report, "delivered_overdue"), Some(0));
    }
}
