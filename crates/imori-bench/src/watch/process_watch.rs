//! Samples the broker's processes.

use crate::probe::process::{disk_bytes, stat, tree, usage_of};
use crate::probe::quota::Quota;
use crate::probe::threads::Threads;
use crate::watch::sample::BrokerSample;

/// Nanoseconds between two searches for new processes.
const TREE_EVERY: u64 = 5_000_000_000;

/// Nanoseconds between two samples of memory and context switches.
const USAGE_EVERY: u64 = 1_000_000_000;

/// The watched processes of the broker.
pub(crate) struct ProcessWatch {
    roots: Vec<u32>,
    pids: Vec<u32>,
    quota: Quota,
    threads: Threads,
    last: BrokerSample,
    tree_due: u64,
    usage_due: u64,
}

impl ProcessWatch {
    /// Watches these processes and their descendants; `None` if there are none.
    pub(crate) fn new(roots: &[u32]) -> Option<ProcessWatch> {
        let first = *roots.first()?;
        Some(ProcessWatch {
            roots: roots.to_vec(),
            pids: roots.to_vec(),
            quota: Quota::of(first),
            threads: Threads::default(),
            last: BrokerSample::default(),
            tree_due: 0,
            usage_due: 0,
        })
    }

    /// Updates the values that are due and returns a sample. `now` reads the clock, also while sampling.
    pub(crate) fn take(&mut self, now: impl Fn() -> u64) -> BrokerSample {
        let begin = now();
        if begin >= self.tree_due {
            self.tree_due = begin + TREE_EVERY;
            self.pids = tree(&self.roots).unwrap_or_default();
            self.quota = self.roots.first().map(|pid| Quota::of(*pid)).unwrap_or_default();
        }
        if begin >= self.usage_due {
            self.usage_due = begin + USAGE_EVERY;
            let usage = usage_of(&self.pids);
            self.last.rss_bytes = usage.rss_bytes;
            self.last.context_switches = usage.context_switches;
        }
        let stats: Vec<_> = self.pids.iter().filter_map(|pid| stat(*pid)).collect();
        self.last.cpu_ticks = stats.iter().fold(0, |sum, stat| sum + stat.cpu_ticks);
        self.last.is_stopped = stats.iter().any(|stat| matches!(stat.state, b'T' | b't'));
        let bytes: Vec<_> = self.pids.iter().filter_map(|pid| disk_bytes(*pid)).collect();
        self.last.read_bytes = bytes.iter().fold(0, |sum, (read, _)| sum + read);
        self.last.write_bytes = bytes.iter().fold(0, |sum, (_, written)| sum + written);
        self.last.held_back = self.quota.held_back();
        self.threads.look(&self.pids, now);
        self.last.without_cpu_nanos = self.threads.without_cpu_nanos;
        self.last.disk_waits = self.threads.disk_waits;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn this_process_is_seen_and_not_stopped() {
        let clock = Clock::start();
        let mut look = ProcessWatch::new(&[std::process::id()]).unwrap();
        let first = look.take(|| clock.now());
        assert!(first.rss_bytes > 0 && first.context_switches > 0 && !first.is_stopped);
        let second = look.take(|| clock.now());
        assert!(second.without_cpu_nanos >= first.without_cpu_nanos);
        assert!(ProcessWatch::new(&[]).is_none());
    }
}
