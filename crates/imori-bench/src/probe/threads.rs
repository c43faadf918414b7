//! Samples the threads of processes: their waits for a CPU, and those waiting for a disk.
//!
//! Watching a broker with hundreds of threads could cost more than the load itself, so the longer a
//! pass takes, the less often it is made; nothing is lost, because the kernel's counters only grow.

use std::collections::HashMap;
use std::fs;

use crate::probe::beat::parse_without_cpu;
use crate::probe::process::{parse_stat, threads};

/// Time between two passes, as a multiple of the time that a pass takes.
const SHARE: u64 = 300;

/// The watched threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Wait for a CPU of the thread that waited longest between two passes, summed over the passes;
    /// nanoseconds.
    pub(crate) without_cpu_nanos: u64,
    /// Threads that waited for a disk in the last pass.
    pub(crate) disk_waits: u32,
    /// Names of threads to ignore.
    left_out: &'static [&'static str],
    /// Run-queue time of each thread at the last pass; `None` for an ignored one.
    waited: HashMap<u32, Option<u64>>,
    due: u64,
}

impl Threads {
    /// Watches all threads except those with these names, and only their waits for CPUs.
    pub(crate) fn without(names: &'static [&'static str]) -> Threads {
        Threads { left_out: names, ..Threads::default() }
    }

    /// Samples all threads of these processes, if a pass is due.
    pub(crate) fn look(&mut self, pids: &[u32], now: impl Fn() -> u64) {
        let begin = now();
        if begin < self.due {
            return;
        }
        let mut longest = 0;
        self.disk_waits = 0;
        let before = std::mem::take(&mut self.waited);
        for pid in pids {
            for thread in threads(*pid) {
                let known = before.get(&thread).copied();
                if known == Some(None) {
                    self.waited.insert(thread, None);
                    continue;
                }
                let folder = format!("/proc/{pid}/task/{thread}");
                let read = |name| fs::read_to_string(format!("{folder}/{name}")).ok();
                // With ignored threads, disk waits are not needed, so one look at the name of each
                // thread suffices.
                if self.left_out.is_empty() || known.is_none() {
                    let line = read("stat").unwrap_or_default();
                    if self.left_out.iter().any(|name| line.contains(&format!("({name})"))) {
                        self.waited.insert(thread, None);
                        continue;
                    }
                    self.disk_waits += u32::from(parse_stat(&line).is_some_and(|stat| stat.state == b'D'));
                }
                if let Some(waited) = read("schedstat").and_then(|line| parse_without_cpu(&line)) {
                    // Waits before a thread was first seen belong to no interval.
                    longest = longest.max(waited.saturating_sub(known.flatten().unwrap_or(waited)));
                    self.waited.insert(thread, Some(waited));
                }
            }
        }
        self.without_cpu_nanos = self.without_cpu_nanos.saturating_add(longest);
        let end = now();
        self.due = end + (end - begin).saturating_mul(SHARE);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn what_takes_long_is_done_less_often() {
        let own = [std::process::id()];
        let mut threads = Threads::default();
        let time = Cell::new(0);
        let looked = Cell::new(0);
        let mut look = |at| {
            time.set(at);
            looked.set(0);
            threads.look(&own, || {
                looked.set(looked.get() + 1);
                // Each pass takes a millisecond between its two reads of the clock.
                time.replace(time.get() + 1_000_000)
            });
            looked.get() == 2
        };
        for (at_ms, expected) in [(0, true), (100, false), (299, false), (400, true), (500, false)] {
            assert_eq!(look(at_ms * 1_000_000), expected, "{at_ms} ms");
        }
        assert!(!threads.waited.is_empty());
    }

    #[test]
    fn threads_that_are_left_out_are_not_looked_at() {
        let own = [std::process::id()];
        std::thread::Builder::new()
            .name("left-out".to_owned())
            .spawn(move || {
                let (mut all, mut others) = (Threads::default(), Threads::without(&["left-out"]));
                let thread = fs::read_link("/proc/thread-self").unwrap();
                let thread: u32 = thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
                let waited = |threads: &Threads| threads.waited.get(&thread).copied();
                // The kernel's list may lack a thread while others end, such as those of other tests.
                let look = |threads: &mut Threads| {
                    let seen = (0..1_000).find_map(|_| {
                        threads.look(&own, || 0);
                        waited(threads)
                    });
                    seen.expect("the thread is in the list")
                };
                assert!(look(&mut all).is_some());
                assert_eq!(look(&mut others), None);
                assert_eq!(look(&mut others), None, "known by its number, not by its name");
            })
            .unwrap()
            .join()
            .unwrap();
    }
}
