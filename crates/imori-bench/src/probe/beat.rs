//! Canaries that sleep and measure their lateness: one anywhere, and one on each CPU of the broker.
//!
//! A late canary reads from the kernel how long it was runnable without a CPU. For the rest of its
//! lateness it could not run at all, because the program or the machine was stopped.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock::Clock;
use crate::probe::canary::{Canary, CanaryKind, Late};

/// Length of a sleep.
const BEAT: Duration = Duration::from_millis(10);

/// Nanoseconds of lateness from which the kernel is asked for the reason; asking costs as much as a beat.
const ASK_NANOS: u64 = 3_000_000;

/// Starts the thread of this canary, pinned to its CPU if it has one.
pub(crate) fn start(canary: Arc<Canary>, clock: Clock, is_over: Arc<AtomicBool>) -> Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name("beat".to_owned())
        .spawn(move || {
            if let CanaryKind::Cpu(cpu) = canary.kind
                && let Err(error) = stay_on(cpu)
            {
                canary.fails(format!("no thread can be put on CPU `{cpu}`: {error}"));
                return;
            }
            beat(&canary, clock, &is_over);
        })
        .context("no thread can be started; raise the limit of processes")
}

fn stay_on(cpu: usize) -> rustix::io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL);
    }
    let mut only = CpuSet::new();
    only.set(cpu);
    sched_setaffinity(None, &only)
}

fn beat(canary: &Canary, clock: Clock, is_over: &AtomicBool) {
    let queue = File::open("/proc/thread-self/schedstat").ok();
    let mut known = queue.as_ref().and_then(without_cpu_nanos);
    // Upper bound of the run-queue time since the kernel was last asked, from beats that were hardly late.
    let mut hardly = 0;
    while !is_over.load(Ordering::Relaxed) {
        let due = clock.now() + BEAT.as_nanos() as u64;
        sleep(BEAT);
        let woken = clock.now();
        let late = woken.saturating_sub(due);
        let mut wait = Late::new(due.min(woken), woken);
        if late >= ASK_NANOS || hardly >= ASK_NANOS {
            let now = queue.as_ref().and_then(without_cpu_nanos);
            let waited = now.zip(known).map(|(now, before)| now.saturating_sub(before + hardly));
            wait.without_cpu = waited.map(|waited| waited.min(late));
            (known, hardly) = (now, 0);
        } else {
            hardly += late;
        }
        canary.waited(wait, true);
    }
}

/// Nanoseconds that this thread was runnable without a CPU.
fn without_cpu_nanos(schedstat: &File) -> Option<u64> {
    let mut line = [0; 96];
    let read = schedstat.read_at(&mut line, 0).ok()?;
    parse_without_cpu(str::from_utf8(line.get(..read)?).ok()?)
}

/// The second number of a `schedstat` line: run-queue time.
pub(crate) fn parse_without_cpu(line: &str) -> Option<u64> {
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_is_recorded_and_ends() {
        let is_over = Arc::new(AtomicBool::new(false));
        let canary = Arc::new(Canary::new(CanaryKind::Client));
        let clock = Clock::start();
        let thread = start(Arc::clone(&canary), clock, Arc::clone(&is_over)).unwrap();
        while canary.record().worst_us(0, u64::MAX / 2).is_none() {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert_eq!(canary.record().failure, None);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_a_failure_with_a_name() {
        for cpu in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU] {
            let canary = Arc::new(Canary::new(CanaryKind::Cpu(cpu)));
            start(Arc::clone(&canary), Clock::start(), Arc::default()).unwrap().join().unwrap();
            let failure = canary.record().failure.clone().unwrap();
            assert!(failure.contains(&format!("`{cpu}`")), "{failure}");
        }
    }

    #[test]
    fn the_kernels_line_is_read() {
        for (line, expected) in [("12 345 6\n", Some(345)), ("12", None), ("1 x 2", None), ("", None)] {
            assert_eq!(parse_without_cpu(line), expected, "{line}");
        }
    }
}
