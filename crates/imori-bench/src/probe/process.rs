//! Resource usage of process trees from `/proc`: CPU, memory, disk and context switches.

use std::fs;

use anyhow::{Result, anyhow};
use serde::Serialize;

/// Clock ticks per second in `/proc/PID/stat`; `USER_HZ` is 100 on every Linux architecture.
const TICKS_A_SECOND: f64 = 100.0;

/// Resource usage of processes and their descendants at one moment.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize)]
pub struct Usage {
    /// User and system time in ticks, including that of reaped children.
    pub cpu_ticks: u64,
    /// Resident memory in bytes.
    pub rss_bytes: u64,
    /// Number of processes.
    pub processes: u32,
    /// Number of threads.
    pub threads: u64,
    /// Context switches of the threads that still exist.
    pub context_switches: u64,
    /// Bytes read from disks; 0 if the kernel denies access.
    pub read_bytes: u64,
    /// Bytes written to disks; 0 if the kernel denies access.
    pub write_bytes: u64,
}

impl Usage {
    /// CPU-seconds used since `earlier`.
    pub fn cpu_seconds_since(&self, earlier: &Usage) -> f64 {
        self.cpu_ticks.saturating_sub(earlier.cpu_ticks) as f64 / TICKS_A_SECOND
    }
}

/// A process, from `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `S` sleeping, `D` waiting for a disk, `T` stopped, and so on.
    pub(crate) state: u8,
    pub(crate) parent: u32,
    pub(crate) cpu_ticks: u64,
    pub(crate) threads: u64,
}

/// The sum over these processes and their descendants; fails if one of the roots is gone.
pub fn usage(roots: &[u32]) -> Result<Usage> {
    let tree = tree(roots)?;
    if let Some(pid) = roots.iter().find(|pid| stat(**pid).is_none()) {
        return Err(anyhow!("process `{pid}` is gone; name the running broker with `--pid`"));
    }
    Ok(usage_of(&tree))
}

/// The sum over exactly these processes; those that are gone are skipped.
pub(crate) fn usage_of(pids: &[u32]) -> Usage {
    let mut sum = Usage::default();
    for pid in pids {
        let Some(stat) = stat(*pid) else {
            continue;
        };
        let (read, written) = disk_bytes(*pid).unwrap_or_default();
        sum.cpu_ticks = sum.cpu_ticks.saturating_add(stat.cpu_ticks);
        sum.threads = sum.threads.saturating_add(stat.threads);
        sum.rss_bytes = sum.rss_bytes.saturating_add(rss_bytes(*pid).unwrap_or(0));
        sum.read_bytes = sum.read_bytes.saturating_add(read);
        sum.write_bytes = sum.write_bytes.saturating_add(written);
        sum.context_switches = sum.context_switches.saturating_add(context_switches(*pid));
        sum.processes = sum.processes.saturating_add(1);
    }
    sum
}

/// Usage of this process.
pub(crate) fn own_usage() -> Result<Usage> {
    let own = usage_of(&[std::process::id()]);
    if own.processes == 0 {
        return Err(anyhow!("`/proc/self/stat` cannot be read; mount `/proc`"));
    }
    Ok(own)
}

/// The CPUs that a process may use, as the kernel's list, such as `0-1`.
pub(crate) fn cpus_allowed(pid: u32) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status_field(&status, "Cpus_allowed_list:").map(str::to_owned)
}

/// Whether a process exists and has not ended; a zombie has.
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().next());
    state.is_some_and(|state| !matches!(state, "Z" | "X"))
}

/// These processes and their descendants.
pub fn tree(roots: &[u32]) -> Result<Vec<u32>> {
    if roots.is_empty() {
        return Ok(Vec::new());
    }
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(stat) = stat(pid) {
            parents.push((pid, stat.parent));
        }
    }
    Ok(descendants(roots, &parents))
}

/// The roots and their descendants, each once.
fn descendants(roots: &[u32], parents: &[(u32, u32)]) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    let mut next: Vec<u32> = roots.to_vec();
    while let Some(pid) = next.pop() {
        if found.contains(&pid) {
            continue;
        }
        found.push(pid);
        next.extend(parents.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
    }
    found
}

/// Reads the state of a process; `None` if it is gone.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses a `stat` line. The second field is a name in parentheses, which may contain spaces and parentheses.
pub(crate) fn parse_stat(text: &str) -> Option<Stat> {
    let (_, after_name) = text.rsplit_once(')')?;
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    // Indexes after the name: 0 state, 1 parent, 11 utime, 12 stime, 13 cutime, 14 cstime, 17 threads.
    let mut cpu_ticks = 0u64;
    for at in 11..=14 {
        cpu_ticks = cpu_ticks.saturating_add(number(at)?);
    }
    let state = *fields.first()?.as_bytes().first()?;
    Some(Stat { state, parent: u32::try_from(number(1)?).ok()?, cpu_ticks, threads: number(17)? })
}

/// Bytes that a process and its reaped children read from disks and wrote to them.
pub(crate) fn disk_bytes(pid: u32) -> Option<(u64, u64)> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let number = |name| status_field(&io, name)?.parse().ok();
    Some((number("read_bytes:")?, number("write_bytes:")?))
}

/// The thread ids of a process.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Context switches of all threads; the kernel counts them per thread.
fn context_switches(pid: u32) -> u64 {
    let of_thread = |thread| {
        let status = fs::read_to_string(format!("/proc/{pid}/task/{thread}/status")).ok()?;
        parse_switches(&status)
    };
    threads(pid).into_iter().filter_map(of_thread).fold(0, u64::saturating_add)
}

fn parse_switches(status: &str) -> Option<u64> {
    let number = |name| status_field(status, name)?.parse::<u64>().ok();
    number("voluntary_ctxt_switches:")?.checked_add(number("nonvoluntary_ctxt_switches:")?)
}

fn rss_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    parse_rss(&status)
}

fn parse_rss(status: &str) -> Option<u64> {
    let kib: u64 = status_field(status, "VmRSS:")?.strip_suffix(" kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        let rest = "S 7 1 1 0 -1 4194560 10 0 0 0 150 50 30 20 20 0 27 0 100 1 1 1";
        for (name, is_stat) in [("beam.smp", true), ("a b", true), ("a) S 9 (b", true), ("", true)] {
            let stat = parse_stat(&format!("42 ({name}) {rest}"));
            assert_eq!(
                stat == Some(Stat { state: b'S', parent: 7, cpu_ticks: 250, threads: 27 }),
                is_stat,
                "{name}"
            );
        }
        for text in ["", "42 (x", "42 (x) S", "42 (x) S a 1 1 0 -1 4194560 10 0 0 0 1 1 1 1 20 0 1"] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        for (status, expected) in [
            ("Name:\tx\nVmRSS:\t    1024 kB\n", Some(1_048_576)),
            ("VmRSS:\t0 kB\n", Some(0)),
            ("VmRSS:\t12 MB\n", None),
            ("Name:\tkthread\n", None),
        ] {
            assert_eq!(parse_rss(status), expected);
        }
    }

    #[test]
    fn switches_of_both_kinds_are_added() {
        for (status, expected) in [
            ("voluntary_ctxt_switches:\t20\nnonvoluntary_ctxt_switches:\t3\n", Some(23)),
            ("nonvoluntary_ctxt_switches:\t3\n", None),
        ] {
            assert_eq!(parse_switches(status), expected);
        }
    }

    #[test]
    fn a_tree_holds_each_descendant_once() {
        let parents = [(2, 1), (3, 2), (4, 1), (5, 9), (9, 5)];
        let mut found = descendants(&[1, 2], &parents);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 3, 4]);
        assert_eq!(descendants(&[5], &parents), [5, 9], "a loop ends");
    }

    #[test]
    fn this_process_has_a_cost() {
        let own = usage(&[std::process::id()]).unwrap();
        assert!(own.rss_bytes > 0 && own.threads > 0 && own.context_switches > 0);
        assert_eq!(usage(&[]).unwrap(), Usage::default());
    }
}
