use super::*;

/// A deterministic generator of random numbers from 0 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Random values from -1 to 1, mostly near 0.
    fn jitter(&mut self) -> f64 {
        (self.next() + self.next() + self.next()) / 1.5 - 1.0
    }

    /// Random times, about `count` of them in a run.
    fn poisson(&mut self, count: f64, run_s: f64) -> Vec<f64> {
        let mut times = Vec::new();
        let mut at = 0.0;
        loop {
            at -= (1.0 - self.next()).ln() * run_s / count;
            if at >= run_s {
                return times;
            }
            times.push(at);
        }
    }
}

fn found(times: &[f64], run_s: f64) -> Result<Period, String> {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    let onsets: Vec<Onset> =
        times.iter().map(|at_s| Onset { at_s: *at_s, length_s: 0.1, verdict: Verdict::Broker }).collect();
    find_period(&onsets, run_s).map(|(period, _)| period)
}

struct Row {
    what: &'static str,
    run_s: f64,
    period_s: f64,
    /// The greatest deviation of a stall, as a fraction of the period.
    jitter: f64,
    /// Variation of each cycle's length as a fraction of the period, which makes the phase drift.
    wander: f64,
    /// Fraction of the cycles without a stall.
    missed: f64,
    /// Number of additional stalls at random times.
    noise: f64,
    /// Number of runs, of a hundred, in which the period must be found.
    found: u32,
}

const ROW: Row = Row {
    what: "",
    run_s: 600.0,
    period_s: 45.0,
    jitter: 0.001,
    wander: 0.0,
    missed: 0.0,
    noise: 0.0,
    found: 100,
};

#[test]
fn a_period_is_found_within_5_percent() {
    for row in [
        Row { what: "a card that freezes each 45 s", ..ROW },
        Row { what: "six cycles", run_s: 271.0, ..ROW },
        Row { what: "100 ms each 2 s", run_s: 18.0, period_s: 2.0, jitter: 0.01, ..ROW },
        Row { what: "jitter of 3 %", jitter: 0.03, found: 98, ..ROW },
        Row { what: "jitter of 8 %, 40 cycles", run_s: 1_800.0, jitter: 0.08, found: 95, ..ROW },
        Row { what: "a timer that begins anew after each", wander: 0.03, found: 95, ..ROW },
        Row { what: "each fifth is missed", missed: 0.2, run_s: 900.0, found: 95, ..ROW },
        Row { what: "as many at random as in the cycle", noise: 13.0, jitter: 0.003, found: 95, ..ROW },
        Row {
            what: "noise, jitter and misses in an hour",
            run_s: 3_600.0,
            noise: 40.0,
            jitter: 0.02,
            missed: 0.1,
            found: 95,
            ..ROW
        },
    ] {
        let mut good = 0;
        let mut last = Err(String::new());
        for seed in 0..100 {
            let mut random = Random(seed * 7919 + 1);
            for _ in 0..9 {
                random.next();
            }
            let mut times = Vec::new();
            let mut due = random.next() * row.period_s.min(20.0);
            while due < row.run_s {
                if random.next() >= row.missed {
                    times.push(due + random.jitter() * row.jitter * row.period_s);
                }
                due += row.period_s * (1.0 + random.jitter() * row.wander);
            }
            times.extend(random.poisson(row.noise.max(1e-9), row.run_s));
            last = found(&times, row.run_s);
            good += u32::from(
                last.as_ref().is_ok_and(|period| (period.period_s / row.period_s - 1.0).abs() <= 0.05),
            );
        }
        assert!(good >= row.found, "{}: {good} of 100, the last {last:?}", row.what);
    }
}

#[test]
fn stalls_at_random_times_have_none() {
    for (count, run_s) in [(8.0, 60.0), (13.0, 600.0), (40.0, 600.0), (120.0, 3_600.0), (400.0, 3_600.0)] {
        let mut wrong = Vec::new();
        let runs = if count > 100.0 { 20 } else { 200 };
        for seed in 0..runs {
            let mut random = Random(seed * 104_729 + 7);
            for _ in 0..9 {
                random.next();
            }
            wrong.extend(found(&random.poisson(count, run_s), run_s));
        }
        assert!(wrong.len() * 100 <= runs as usize, "{count} stalls in {run_s} s: {wrong:?}");
    }
}

#[test]
fn too_few_stalls_are_said_to_be_too_few() {
    for (times, expected) in [
        (vec![], "no stalls"),
        (vec![1.0, 2.0, 3.0, 4.0, 5.0], "not enough: 5 stalls, a cycle shows with 6"),
        (vec![1.0, 2.7, 3.1, 7.7, 8.0, 30.0], "the stalls follow no cycle"),
    ] {
        assert_eq!(found(&times, 60.0), Err(expected.to_owned()), "{times:?}");
    }
}

#[test]
fn phase_confidence_and_the_verdict_of_the_cycle_are_told() {
    let cycle = (0..13).map(|number| Onset {
        at_s: 20.0 + 45.0 * f64::from(number),
        length_s: 1.0,
        verdict: Verdict::Disk,
    });
    let others = [31.0, 57.0, 302.0].map(|at_s| Onset { at_s, length_s: 0.03, verdict: Verdict::HostCpu });
    let mut onsets: Vec<Onset> = cycle.chain(others).collect();
    onsets.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let (period, verdict) = find_period(&onsets, 600.0).unwrap();
    assert!((period.period_s - 45.0).abs() < 1e-6 && (period.phase_s - 20.0).abs() < 1e-6, "{period:?}");
    assert!(period.confidence > 0.99, "{period:?}");
    assert_eq!((period.cycles, verdict), (13, Verdict::Disk));
}
