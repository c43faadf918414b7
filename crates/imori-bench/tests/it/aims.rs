//! Objectives, and the search for the highest rate.

use std::time::Duration;

use imori_bench::Outcome;

use crate::liar::{Habits, Liar, Lie};
use crate::nats_liar::NatsLiar;
use crate::{attempt, run};

/// Time that the broker takes per message, which limits its rate.
const SERVICE: Duration = Duration::from_micros(950);

#[test]
fn the_highest_rate_of_a_broker_is_found() {
    let liar = Liar::with(Habits { service: Some(SERVICE), ..Habits::default() });
    // The objective is lenient, so that the backlog ends a step, and not how busy this machine is.
    let search = "--rate find --slo p50<20s --arrival fixed --find-step 1s --warmup 20ms";
    let report = run(&liar.url(), &format!("pubsub {search}"));
    assert_eq!((report.outcome, report.exit_code()), (Outcome::Done, 0));
    let found = report.open.as_ref().unwrap().rate;
    let can = 1.0 / SERVICE.as_secs_f64();
    assert!((found / can - 1.0).abs() < 0.15, "found {found}, and it can {can}: {:?}", report.steps);
    assert!(report.steps.iter().all(|step| step.is_kept == step.broken.is_empty()));
    let confirming = report.steps.iter().rev().take(3);
    assert!(
        confirming.clone().count() == 3 && confirming.clone().all(|step| step.is_kept && step.rate == found)
    );
    assert!(report.steps.iter().any(|step| !step.is_kept && step.rate > can), "{:?}", report.steps);
    let told = format!("{found:.0} a second is the highest rate");
    assert!(report.notes.iter().any(|note| note.starts_with(&told)), "{:?}", report.notes);
}

#[test]
fn an_objective_that_is_not_kept_is_an_exit_code() {
    for (slo, kept, code) in [
        ("max<60s,lost=0,stall50=0%", &[true, true, true][..], 0),
        ("p50<1us,lost=0", &[false, true][..], 5),
        ("p99.9<60s", &[false][..], 5),
    ] {
        for arguments in
            ["rpc --requests 100 --warmup 0", "pubsub --rate 1000 --arrival fixed --time 100ms --warmup 0"]
        {
            let report = run(&NatsLiar::start(Lie::None, "", 0).url(), &format!("{arguments} --slo {slo}"));
            let found: Vec<bool> = report.objectives.iter().map(|objective| objective.is_kept).collect();
            assert_eq!((found.as_slice(), report.exit_code()), (kept, code), "{arguments} {slo}");
            assert_eq!(report.outcome, Outcome::Done, "{arguments} {slo}");
        }
    }
}

#[test]
fn a_search_says_what_it_lacks() {
    let url = NatsLiar::start(Lie::None, "", 0).url();
    for (arguments, told) in [
        ("rpc --rate find", "say it with `--slo p99<10ms`"),
        ("pubsub --rate find --slo lost=0 --find-step 500ms", "use `--find-step 1s` or more"),
        ("pubsub", "nothing says how fast to send"),
        ("soak --closed", "a soak is an open loop"),
        ("pubsub --rate 10 --confirm 3", "core NATS confirms nothing"),
    ] {
        let error = attempt(&url, arguments).unwrap_err().to_string();
        assert!(error.contains(told), "{arguments}: {error}");
    }
}
