//! Finds the stalls of a run: operations that were due and did not finish, and late canaries.

use crate::probe::canary::CanaryKind;
use crate::record::series::{Stall, Stalls, Verdict};
use crate::record::slow::{SLOW_NANOS, SlowStretches};
use crate::watch::evidence::Evidence;
use crate::watch::findings::Setting;
use crate::watch::period::{Onset, find_period};
use crate::watch::suspect::suspect;
use crate::watch::verdict::verdict;

/// Multiple of the usual response time that counts as a stall.
const TIMES_USUAL: f64 = 20.0;

/// Number of one-second medians that define the usual response time.
const USUAL_SECONDS: usize = 10;

/// Nanoseconds between two stalls that are still merged.
const GAP_NANOS: u64 = 50_000_000;

/// The most stalls listed; further ones are counted.
const LIST_MAX: usize = 1_000;

/// The operations of a run, as seen by the load; times are nanoseconds of the run's clock.
#[derive(Debug)]
pub(crate) struct Operations<'a> {
    /// The slow operations.
    pub(crate) slow: &'a SlowStretches,
    /// Median response in microseconds of each second since `from`.
    pub(crate) p50_us: &'a [Option<f64>],
    /// When measuring began.
    pub(crate) from: u64,
    /// End of measuring.
    pub(crate) until: u64,
    /// Number of operations.
    pub(crate) total: u64,
    /// Number of operations answered within 50 ms.
    pub(crate) within_50_ms: u64,
    /// Name and version that the broker reports.
    pub(crate) server: &'a str,
}

/// A stall before its cause is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Candidate {
    begin: u64,
    end: u64,
    operations: u64,
    worst: u64,
    sum: u64,
}

/// Finds the stalls among these operations and judges their causes.
pub(crate) fn judge(operations: &Operations<'_>, evidence: &Evidence, setting: &Setting) -> Stalls {
    let found = find(operations, evidence);
    let hours = operations.until.saturating_sub(operations.from) as f64 / 3.6e12;
    let mut stalls = Stalls {
        threshold_us: threshold(operations, operations.until) as f64 / 1e3,
        unlisted: found.len().saturating_sub(LIST_MAX) as u64,
        longest_s: found.iter().map(|found| seconds(found.end - found.begin)).fold(0.0, f64::max),
        available_at_50_ms: (operations.total > 0)
            .then(|| operations.within_50_ms as f64 / operations.total as f64),
        ..Stalls::default()
    };
    let mut onsets = Vec::with_capacity(found.len());
    let mut counts: Vec<(Verdict, u64)> = Vec::new();
    for one in &found {
        let (verdict, evidence) = verdict(evidence, setting, one.begin, one.end);
        match counts.iter_mut().find(|(counted, _)| *counted == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict, 1)),
        }
        let start_s = one.begin as f64 / 1e9 - operations.from as f64 / 1e9;
        onsets.push(Onset { at_s: start_s, length_s: seconds(one.end - one.begin), verdict });
        if stalls.list.len() < LIST_MAX {
            stalls.list.push(Stall {
                start_s,
                length_s: seconds(one.end - one.begin),
                operations: one.operations,
                worst_us: one.worst as f64 / 1e3,
                delay_s: seconds(one.sum),
                verdict,
                evidence,
            });
        }
    }
    counts.sort_unstable();
    if hours > 0.0 {
        stalls.per_hour =
            counts.into_iter().map(|(verdict, count)| (verdict, count as f64 / hours)).collect();
    }
    match find_period(&onsets, seconds(operations.until.saturating_sub(operations.from))) {
        Ok((mut period, verdict)) => {
            period.suspect = suspect(operations.server, verdict, period.period_s);
            stalls.period = Some(period);
        }
        Err(why) => stalls.no_period = Some(why),
    }
    stalls
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Intervals of slow operations or late canaries above the threshold, merged if they are close together.
fn find(operations: &Operations<'_>, evidence: &Evidence) -> Vec<Candidate> {
    let slow = operations.slow.stretches().iter().map(|slow| Candidate {
        begin: slow.begin,
        end: slow.end,
        operations: slow.operations,
        worst: slow.worst,
        sum: slow.sum,
    });
    let late = missed_beats(evidence).into_iter().map(|(begin, end)| Candidate {
        begin,
        end,
        operations: 0,
        worst: 0,
        sum: 0,
    });
    let mut all: Vec<Candidate> = slow
        .chain(late)
        .filter(|found| found.end > operations.from && found.begin < operations.until)
        .filter(|found| {
            let longest = if found.operations > 0 { found.worst } else { found.end - found.begin };
            longest >= threshold(operations, found.begin)
        })
        .collect();
    all.sort_unstable_by_key(|found| found.begin);
    let mut merged: Vec<Candidate> = Vec::with_capacity(all.len());
    for found in all {
        match merged.last_mut() {
            Some(last) if found.begin <= last.end.saturating_add(GAP_NANOS) => {
                last.end = last.end.max(found.end);
                last.operations += found.operations;
                last.worst = last.worst.max(found.worst);
                last.sum = last.sum.saturating_add(found.sum);
            }
            _ => merged.push(found),
        }
    }
    merged
}

/// Intervals in which the client's beat was late, or the beats on all of the broker's CPUs at once.
fn missed_beats(evidence: &Evidence) -> Vec<(u64, u64)> {
    let of_kind = |is_kind: fn(&CanaryKind) -> bool| {
        let records = evidence.canaries.iter().filter(move |(kind, _)| is_kind(kind));
        records.map(|(_, record)| record.late.iter().map(|late| (late.begin, late.end)).collect::<Vec<_>>())
    };
    let on_all_cpus = of_kind(|kind| matches!(kind, CanaryKind::Cpu(_))).reduce(|a, b| common(&a, &b));
    let of_client = of_kind(|kind| *kind == CanaryKind::Client).flatten();
    of_client.chain(on_all_cpus.unwrap_or_default()).collect()
}

/// The intersection of two ordered lists of intervals.
fn common(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut both = Vec::new();
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(one), Some(other)) = (a.peek(), b.peek()) {
        let (begin, end) = (one.0.max(other.0), one.1.min(other.1));
        if begin < end {
            both.push((begin, end));
        }
        if one.1 <= other.1 {
            a.next();
        } else {
            b.next();
        }
    }
    both
}

/// Nanoseconds from which a wait at this moment is a stall, by the usual response time just before.
fn threshold(operations: &Operations<'_>, at: u64) -> u64 {
    let second = (at.saturating_sub(operations.from) / 1_000_000_000) as usize;
    // At the beginning too, ten seconds are considered, so that one slow second does not pass for usual.
    let last = (second + 1).max(USUAL_SECONDS).min(operations.p50_us.len());
    let before = operations.p50_us.get(last.saturating_sub(USUAL_SECONDS)..last).unwrap_or_default();
    let mut medians: Vec<f64> = before.iter().copied().flatten().collect();
    medians.sort_unstable_by(f64::total_cmp);
    let usual_us = medians.get(medians.len() / 2).copied().unwrap_or(0.0);
    SLOW_NANOS.max((usual_us * 1e3 * TIMES_USUAL) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::canary::{Canary, Late};

    const MS: u64 = 1_000_000;
    const FROM: u64 = 5_000 * MS;

    fn found(
        operations: &[(u64, u64)],
        beats: &[(u64, u64)],
        p50_us: &[Option<f64>],
    ) -> Vec<(u64, u64, u64)> {
        let mut slow = SlowStretches::default();
        for (due, ended) in operations {
            slow.note(FROM + due * MS, FROM + ended * MS);
        }
        let canary = Canary::new(CanaryKind::Client);
        for (begin, end) in beats {
            let wait = Late::new(FROM + begin * MS, FROM + end * MS);
            canary.waited(wait, true);
        }
        let record = canary.record().clone();
        let evidence = Evidence { canaries: vec![(CanaryKind::Client, record)], samples: Vec::new() };
        let operations = Operations {
            slow: &slow,
            p50_us,
            from: FROM,
            until: FROM + 60_000 * MS,
            total: 10,
            within_50_ms: 9,
            server: "",
        };
        let relative = |nanos: u64| (nanos - FROM) / MS;
        find(&operations, &evidence)
            .iter()
            .map(|found| (relative(found.begin), relative(found.end), found.operations))
            .collect()
    }

    #[test]
    fn a_stall_is_longer_than_20_ms_and_than_20_medians() {
        let fast = [Some(200.0)];
        let slow = [Some(5_000.0)];
        for (p50_us, operations, expected) in [
            (fast, vec![(100, 119)], vec![]),
            (fast, vec![(100, 130)], vec![(100, 130, 1)]),
            (slow, vec![(100, 199)], vec![]),
            (slow, vec![(100, 200)], vec![(100, 200, 1)]),
            ([None], vec![(100, 130)], vec![(100, 130, 1)]),
        ] {
            assert_eq!(found(&operations, &[], &p50_us), expected, "{operations:?} with {p50_us:?}");
        }
    }

    #[test]
    fn beats_that_are_missed_are_stalls_too_and_what_is_close_is_one() {
        for (operations, beats, expected) in [
            (vec![], vec![(100, 115)], vec![]),
            (vec![], vec![(100, 130)], vec![(100, 130, 0)]),
            (vec![(100, 300), (150, 310)], vec![(90, 140)], vec![(90, 310, 2)]),
            (vec![(100, 200), (250, 300), (351, 400)], vec![], vec![(100, 300, 2), (351, 400, 1)]),
        ] {
            assert_eq!(found(&operations, &beats, &[]), expected, "{operations:?} {beats:?}");
        }
    }

    #[test]
    fn only_what_all_cpus_miss_is_missed() {
        for (a, b, expected) in [
            (vec![(0, 10)], vec![(5, 20)], vec![(5, 10)]),
            (vec![(0, 100)], vec![(10, 20), (30, 40)], vec![(10, 20), (30, 40)]),
            (vec![(0, 10), (50, 90)], vec![(20, 30), (80, 95)], vec![(80, 90)]),
            (vec![(0, 10)], vec![], vec![]),
        ] {
            assert_eq!(common(&a, &b), expected, "{a:?} {b:?}");
            assert_eq!(common(&b, &a), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn what_is_usual_follows_the_last_ten_seconds() {
        let slow = SlowStretches::default();
        let p50_us: Vec<Option<f64>> =
            [vec![Some(500.0); 10], vec![None; 2], vec![Some(9_000.0); 10]].concat();
        let operations = Operations {
            slow: &slow,
            p50_us: &p50_us,
            from: FROM,
            until: FROM,
            total: 0,
            within_50_ms: 0,
            server: "",
        };
        assert_eq!(
            threshold(&Operations { p50_us: &[Some(9e5), Some(500.0), Some(500.0)], ..operations }, FROM),
            20 * MS
        );
        for (second, expected) in [(0, 20), (9, 20), (13, 20), (21, 180), (99, 180)] {
            let at = FROM + second * 1_000 * MS;
            assert_eq!(threshold(&operations, at), expected * MS, "second {second}");
        }
    }
}
