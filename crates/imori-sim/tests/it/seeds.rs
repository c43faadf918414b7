//! The real core and protocols keep every property on every seed, and every planted bug is caught.

#![allow(clippy::print_stdout, reason = "the time that many seeds took is part of the result")]

use std::collections::BTreeSet;
use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use imori_sim::{Bug, Goodbyes, Outcome, Property, repeat_command, run_seed};

/// The number of seeds to run unless `IMORI_SIM_SEEDS` is set.
const SEEDS: u64 = 10_000;

/// The number of seeds within which each planted bug must be caught. The rarest needs about 1,100.
const SEEDS_PER_BUG_MAX: u64 = 5_000;

/// Runs `job` on each core.
fn on_every_core<R: Send>(job: impl Fn() -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(&job)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run catches its own panics")).collect()
    })
}

/// Hands out the seeds below `end`, each to one of the threads that share `next`.
fn seeds(next: &AtomicU64, end: u64) -> impl Iterator<Item = u64> + '_ {
    std::iter::from_fn(move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end))
}

#[test]
fn every_property_holds_on_every_seed() {
    let end = env::var("IMORI_SIM_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(SEEDS);
    let (next, points, shadows) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (pending, ends_with_pending) = (AtomicU64::new(0), AtomicU64::new(0));
    let goodbyes = Mutex::new(Goodbyes::default());
    let start = Instant::now();
    let broken: Vec<String> = on_every_core(|| {
        let violated = seeds(&next, end).filter_map(|seed| {
            let outcome = run_seed(seed, None, None);
            points.fetch_add(outcome.points, Ordering::Relaxed);
            shadows.fetch_add(outcome.shadows, Ordering::Relaxed);
            pending.fetch_add(u64::from(outcome.has_pending_dead_letters), Ordering::Relaxed);
            ends_with_pending.fetch_add(outcome.ends_with_pending, Ordering::Relaxed);
            goodbyes.lock().expect("nobody panics with it").add(&outcome.goodbyes);
            let violation = outcome.violation?;
            Some(format!("seed {seed}: {violation}\n  {}", repeat_command(seed)))
        });
        violated.collect::<Vec<_>>()
    })
    .into_iter()
    .flatten()
    .collect();
    let points = points.into_inner();
    println!("{end} seeds, {points} ends of the broker, in {:.1} s", start.elapsed().as_secs_f64());
    assert!(end < 1_000 || points > 20 * end, "{points} ends are few");
    let shadows = shadows.into_inner();
    println!("compared with a restart {shadows} times");
    assert!(end < 1_000 || shadows > 2 * end, "{shadows} comparisons with a restart are few");
    let (pending, ends_with_pending) = (pending.into_inner(), ends_with_pending.into_inner());
    println!(
        "dead letters waited for room in {pending} of them, and while {ends_with_pending} brokers ended"
    );
    assert!(end < 1_000 || pending.min(ends_with_pending) > end / 100, "few dead letters wait for room");
    let goodbyes = goodbyes.into_inner().expect("nobody panics with it");
    println!("{goodbyes}");
    let fewest = goodbyes.with_unsettled.min(goodbyes.with_unconfirmed).min(goodbyes.with_parked);
    assert!(end < 1_000 || fewest > end / 100, "few sessions end in the middle of anything: {goodbyes}");
    assert!(broken.is_empty(), "{} of {end} seeds are broken:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn every_planted_bug_is_caught_by_the_property_it_breaks() {
    let (next, rarest) = (AtomicU64::new(0), AtomicU64::new(0));
    let escaped: Vec<String> = on_every_core(|| {
        let mut escaped = Vec::new();
        for index in seeds(&next, Bug::ALL.len() as u64) {
            let Some((bug, expected)) = usize::try_from(index).ok().and_then(|index| Bug::ALL.get(index))
            else {
                continue;
            };
            match catch(*bug, expected) {
                Some(seed) => drop(rarest.fetch_max(seed, Ordering::Relaxed)),
                None => escaped.push(format!("{bug:?}")),
            }
        }
        escaped
    })
    .into_iter()
    .flatten()
    .collect();
    println!("{} planted bugs, the rarest caught at seed {}", Bug::ALL.len(), rarest.into_inner());
    assert!(escaped.is_empty(), "not caught in {SEEDS_PER_BUG_MAX} seeds: {}", escaped.join(", "));
}

fn catch(bug: Bug, expected: &[Property]) -> Option<u64> {
    (0..SEEDS_PER_BUG_MAX).find(|seed| {
        let violation = run_seed(*seed, Some(bug), None).violation;
        violation.is_some_and(|violation| expected.contains(&violation.property))
    })
}

#[test]
fn the_same_seed_makes_the_same_run() {
    let mut hashes = BTreeSet::new();
    for (seed, bug) in (0..50).flat_map(|seed| [(seed, None), (seed, Some(Bug::LostWake))]) {
        // Reading the trace must not change the run.
        let (first, second) =
            (run_seed(seed, bug, None), run_seed(seed, bug, Some(|line| assert_ne!(line, ""))));
        let text = |outcome: &Outcome| outcome.violation.as_ref().map(ToString::to_string);
        assert_eq!((first.hash, first.steps), (second.hash, second.steps), "seed {seed}");
        assert_eq!(text(&first), text(&second), "seed {seed}");
        hashes.insert(first.hash);
    }
    assert!(hashes.len() > 50, "different seeds make different runs");
}
