//! The thread that takes a sample every 100 ms.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;
use crate::probe::host::Host;
use crate::probe::quota::Quota;
use crate::probe::threads::Threads;
use crate::watch::process_watch::ProcessWatch;
use crate::watch::sample::{ClientSample, Sample};

/// Interval of the samples.
pub(crate) const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Nanoseconds between two reads of this process's control groups.
const QUOTA_EVERY: u64 = 5_000_000_000;

/// The most samples kept, ten hours of them. After that, every other one of the older half is
/// dropped: the counters only grow, so the past loses resolution but no amounts.
const SAMPLES_MAX: usize = 360_000;

/// Names of the watching threads, which delay no operation while they wait.
const OWN_THREADS: &[&str] = &["beat", "disk-canary", "net-canary", "echo", "sampler"];

/// The samples; the sampler writes, other threads read.
pub(crate) type Samples = Arc<Mutex<Vec<Sample>>>;

/// Starts sampling the machine, this process and the broker's processes.
pub(crate) fn start(
    samples: Samples,
    pids: &[u32],
    clock: Clock,
    is_over: Arc<AtomicBool>,
) -> Result<JoinHandle<()>> {
    let mut look = ProcessWatch::new(pids);
    let own = std::process::id();
    let mut quota = Quota::of(own);
    let mut quota_due = 0;
    let mut threads = Threads::without(OWN_THREADS);
    // The first sample must exist before the broker gets any work.
    let mut take = move || {
        let at = clock.now();
        if at >= quota_due {
            quota_due = at + QUOTA_EVERY;
            quota = Quota::of(own);
        }
        threads.look(&[own], || clock.now());
        let client = ClientSample {
            cpu_nanos: own_cpu_nanos(),
            without_cpu_nanos: threads.without_cpu_nanos,
            held_back: quota.held_back(),
        };
        let sample = Sample {
            at,
            host: Host::read(),
            client,
            broker: look.as_mut().map(|look| look.take(|| clock.now())),
        };
        keep(&mut samples.lock().unwrap_or_else(PoisonError::into_inner), sample);
    };
    take();
    std::thread::Builder::new()
        .name("sampler".to_owned())
        .spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                sleep(SAMPLE_EVERY);
                take();
            }
        })
        .context("no thread can be started; raise the limit of processes")
}

fn own_cpu_nanos() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000)
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn keep(samples: &mut Vec<Sample>, sample: Sample) {
    if samples.len() >= SAMPLES_MAX {
        let half = samples.len() / 2;
        let mut at = 0;
        samples.retain(|_| {
            at += 1;
            at > half || at % 2 == 1
        });
    }
    samples.push(sample);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_past_gets_thinner_and_is_never_lost() {
        let mut samples = Vec::new();
        for at in 0..=SAMPLES_MAX as u64 {
            keep(&mut samples, Sample { at, ..Sample::default() });
        }
        assert_eq!(samples.len(), SAMPLES_MAX / 4 * 3 + 1);
        assert!(samples.is_sorted_by_key(|sample| sample.at));
        let last = samples.last().map(|sample| sample.at);
        assert_eq!((samples[0].at, samples[1].at, last), (0, 2, Some(SAMPLES_MAX as u64)));
    }

    #[test]
    fn the_first_sample_is_there_at_once() {
        let samples = Samples::default();
        let is_over = Arc::new(AtomicBool::new(true));
        start(Arc::clone(&samples), &[std::process::id()], Clock::start(), is_over).unwrap().join().unwrap();
        let samples = samples.lock().unwrap();
        assert!(samples[0].client.cpu_nanos > 0 && samples[0].broker.is_some());
    }
}
