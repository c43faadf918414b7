//! Looks at the broker's processes, no more often than it may cost.
//!
//! A broker with hundreds of threads would cost more to watch than to load, so that what is read
//! of each thread is read less often the longer it takes; each thread's counters only grow.

use std::collections::HashMap;
use std::fs;

use crate::watch::beat::parse_without_cpu;
use crate::watch::process::{disk_bytes, parse_stat, stat, threads, tree, usage_of};
use crate::watch::quota::Quota;
use crate::watch::sample::BrokerSample;

/// Nanoseconds between two looks for new processes.
const TREE_EVERY: u64 = 5_000_000_000;

/// Nanoseconds between two looks at memory and switches.
const USAGE_EVERY: u64 = 1_000_000_000;

/// The share of time that looking at threads may take is one to this.
const THREADS_SHARE: u64 = 300;

/// The broker's processes as they are watched.
pub(crate) struct Look {
    roots: Vec<u32>,
    pids: Vec<u32>,
    quota: Quota,
    /// How long each thread has waited for a CPU until it was last looked at.
    without_cpu: HashMap<u32, u64>,
    last: BrokerSample,
    tree_due: u64,
    usage_due: u64,
    threads_due: u64,
}

impl Look {
    /// Watches these processes and all that descend from them; none if there are none.
    pub(crate) fn new(roots: &[u32]) -> Option<Look> {
        let first = *roots.first()?;
        Some(Look {
            roots: roots.to_vec(),
            pids: roots.to_vec(),
            quota: Quota::of(first),
            without_cpu: HashMap::new(),
            last: BrokerSample::default(),
            tree_due: 0,
            usage_due: 0,
            threads_due: 0,
        })
    }

    /// Looks at what is due; `now` tells the time, also while looking.
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
        let threads_from = now();
        if threads_from >= self.threads_due {
            self.look_at_threads();
            let done = now();
            self.threads_due = done + (done - threads_from).saturating_mul(THREADS_SHARE);
        }
        self.last
    }

    fn look_at_threads(&mut self) {
        let mut longest = 0;
        self.last.disk_waits = 0;
        let before = std::mem::take(&mut self.without_cpu);
        for pid in &self.pids {
            for thread in threads(*pid) {
                let folder = format!("/proc/{pid}/task/{thread}");
                let read = |name| fs::read_to_string(format!("{folder}/{name}")).ok();
                if read("stat").and_then(|line| parse_stat(&line)).is_some_and(|stat| stat.state == b'D') {
                    self.last.disk_waits += 1;
                }
                if let Some(waited) = read("schedstat").and_then(|line| parse_without_cpu(&line)) {
                    // What a thread waited before it was first seen belongs to no stretch.
                    longest =
                        longest.max(waited - before.get(&thread).map_or(waited, |last| *last.min(&waited)));
                    self.without_cpu.insert(thread, waited);
                }
            }
        }
        self.last.without_cpu_nanos = self.last.without_cpu_nanos.saturating_add(longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;

    #[test]
    fn this_process_is_seen_and_not_stopped() {
        let clock = Clock::start();
        let mut look = Look::new(&[std::process::id()]).unwrap();
        let first = look.take(|| clock.now());
        assert!(first.rss_bytes > 0 && first.context_switches > 0 && !first.is_stopped);
        let second = look.take(|| clock.now());
        assert!(second.without_cpu_nanos >= first.without_cpu_nanos);
        assert!(Look::new(&[]).is_none());
    }
}
