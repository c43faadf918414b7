//! Memory and CPU usage of this process.

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::lock::lock;

/// Linux reports CPU time in hundredths of a second on all machines.
const TICKS_A_SECOND: f64 = 100.0;

/// Shortest interval over which CPU usage is measured.
const STRETCH: Duration = Duration::from_secs(1);

/// Resident memory in bytes.
pub fn memory_bytes() -> Option<u64> {
    parse_memory(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Measures CPU usage.
#[derive(Debug)]
pub(crate) struct CpuMeter(Mutex<Sample>);

#[derive(Debug)]
struct Sample {
    at: Instant,
    ticks: u64,
    percent: f64,
}

impl CpuMeter {
    pub(crate) fn start() -> CpuMeter {
        CpuMeter(Mutex::new(Sample { at: Instant::now(), ticks: ticks().unwrap_or(0), percent: 0.0 }))
    }

    /// CPU usage since the last measurement in percent of one CPU, rounded to tenths; two busy CPUs are 200.
    pub(crate) fn percent(&self) -> f64 {
        let mut last = lock(&self.0);
        let stretch = last.at.elapsed();
        if stretch >= STRETCH
            && let Some(ticks) = ticks()
        {
            let used = ticks.saturating_sub(last.ticks) as f64 / TICKS_A_SECOND;
            let percent = (used / stretch.as_secs_f64() * 1000.0).round() / 10.0;
            *last = Sample { at: Instant::now(), ticks, percent };
        }
        last.percent
    }
}

/// Resource usage of the process; values that the system does not report are absent.
#[derive(Debug, Default)]
pub struct Usage {
    /// CPU time in seconds.
    pub cpu_s: Option<f64>,
    /// Address space in bytes.
    pub virtual_bytes: Option<f64>,
    /// Number of threads.
    pub threads: Option<f64>,
    /// Number of file descriptors in use.
    pub open_files: Option<f64>,
    /// Number of file descriptors that the system allows.
    pub open_files_max: Option<f64>,
}

/// Reads the current usage.
pub fn usage() -> Usage {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The directory being read is open too.
    let open_files = fs::read_dir("/proc/self/fd").ok().map(|files| files.count().saturating_sub(1) as f64);
    Usage {
        cpu_s: parse_ticks(&stat).map(|ticks| ticks as f64 / TICKS_A_SECOND),
        virtual_bytes: parse_field(&stat, 20),
        threads: parse_field(&stat, 17),
        open_files,
        open_files_max: getrlimit(Resource::Nofile).current.map(|max| max as f64),
    }
}

/// A number in `stat`, this many fields after the process name.
fn parse_field(stat: &str, field: usize) -> Option<f64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(field)?.parse().ok()
}

fn ticks() -> Option<u64> {
    parse_ticks(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Resident memory in bytes, from the text of `/proc/self/status`.
pub fn parse_memory(status: &str) -> Option<u64> {
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
    kib.checked_mul(1024)
}

/// User and system time in ticks, from the text of `/proc/self/stat`: 11 fields after the process name, which may contain
/// anything, even `)`.
pub fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    times.next()?.ok()?.checked_add(times.next()?.ok()?)
}
