//! The CPU time of a run, against its limits.

use std::time::Duration;

use imori_ruby::for_tests::{Budget, Usage, Verdict};
use imori_ruby::{CPU_GRACE, CPU_WARNINGS_MAX, Limits};

const MS: Duration = Duration::from_millis(1);

#[test]
fn script_is_warned_and_then_lost() {
    let limits = Limits { slice_cpu: 100 * MS, run_cpu: 150 * MS, ..Limits::default() };
    let mut budget = Budget::new(&limits, Usage::default());
    assert_eq!(budget.verdict(93 * MS), Verdict::GoOn(7 * MS));
    for warning in 0..CPU_WARNINGS_MAX {
        let used = 100 * MS + CPU_GRACE * warning;
        assert_eq!(budget.verdict(used), Verdict::Raise);
        assert_eq!(budget.verdict(used + CPU_GRACE - MS), Verdict::GoOn(MS));
    }
    assert_eq!(budget.verdict(200 * MS), Verdict::Lose);
}

#[test]
fn slices_share_the_time_of_their_run() {
    let limits = Limits { slice_cpu: 100 * MS, run_cpu: 150 * MS, ..Limits::default() };
    let first = Budget::new(&limits, Usage::default()).end(90 * MS);
    let mut second = Budget::new(&limits, first);
    assert_eq!(second.verdict(Duration::ZERO), Verdict::GoOn(60 * MS));
    assert_eq!(second.verdict(60 * MS), Verdict::Raise);
    let mut third = Budget::new(&limits, second.end(70 * MS));
    assert_eq!(third.left(Duration::ZERO), Duration::ZERO);
    assert_eq!(third.verdict(Duration::ZERO), Verdict::Raise);
    assert_eq!(third.left(Duration::ZERO), CPU_GRACE, "the run may end in order");
}
