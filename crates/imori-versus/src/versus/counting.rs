//! Counts the system calls with which a program writes to disks or waits for them, from outside.
//!
//! `perf` counts without stopping the program; `strace` is more widely available, but slows the program down.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use rustix::process::{Pid, Signal, kill_process};

/// Calls that return once previous writes are on the disk.
pub(crate) const FLUSHES: [&str; 4] = ["fsync", "fdatasync", "syncfs", "sync"];

/// Calls that write, or start a write or flush, and that may wait for the disk depending on the file's flags.
const OTHERS: [&str; 8] =
    ["sync_file_range", "msync", "io_uring_enter", "io_submit", "pwrite64", "pwritev", "pwritev2", "writev"];

/// The flag of a file whose writes wait for the disk; octal, as in `fdinfo`.
const O_DSYNC: u64 = 0o10000;

/// The program that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Counter {
    Perf,
    Strace,
}

/// The counts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Counted {
    /// Start of counting, in seconds since 1970.
    pub(crate) began: f64,
    /// Duration of counting.
    pub(crate) seconds: f64,
    /// Number of calls by name; calls that never occurred are absent.
    pub(crate) calls: Vec<(String, u64)>,
}

impl Counter {
    /// The counter that is installed and permitted.
    pub(crate) fn found() -> Result<Counter> {
        if Counter::perf_events().is_ok_and(|events| !events.is_empty()) {
            return Ok(Counter::Perf);
        }
        match quiet("strace", &["-V"]) {
            Ok(_) => Ok(Counter::Strace),
            Err(_) => bail!("neither `perf` nor `strace` can be used; install one of them, and run as root"),
        }
    }

    /// Counts the calls of these processes and all their threads for a time.
    pub(crate) fn count(self, pids: &[u32], time: Duration) -> Result<Counted> {
        ensure!(!pids.is_empty(), "a broker that is not started here has no processes to look at");
        let file = Written::fresh();
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        match self {
            Counter::Perf => perf(pids, time, &file.0)?,
            Counter::Strace => strace(pids, time, &file.0)?,
        }
        let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let text = fs::read_to_string(&file.0).context("what was counted cannot be read")?;
        let calls = match self {
            Counter::Perf => of_perf(&text),
            Counter::Strace => of_strace(&text),
        };
        // `strace` takes a moment to attach to all threads and to detach.
        let seconds = match self {
            Counter::Perf => time.as_secs_f64(),
            Counter::Strace => ended - began,
        };
        Ok(Counted { began, seconds, calls })
    }

    /// The tracepoints of the counted calls that this kernel offers.
    fn perf_events() -> Result<Vec<String>> {
        let listed = quiet("perf", &["list", "--raw-dump", "tracepoint"])?;
        let event = |name: &&str| format!("syscalls:sys_enter_{name}");
        let wanted = FLUSHES.iter().chain(&OTHERS).map(event);
        let known: Vec<&str> = listed.split_whitespace().collect();
        Ok(wanted.filter(|event| known.contains(&event.as_str())).collect())
    }
}

impl Counted {
    /// Number of calls with this name.
    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.calls.iter().filter(|(known, _)| known == name).map(|(_, calls)| calls).sum()
    }

    /// Number of calls that return once previous writes are on the disk.
    pub(crate) fn flushes(&self) -> u64 {
        FLUSHES.iter().map(|name| self.calls(name)).sum()
    }
}

/// Number of files that these processes have open with synchronous writes.
pub(crate) fn synchronous_files(pids: &[u32]) -> u64 {
    let open = pids.iter().filter_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).ok());
    let is_synchronous = |link: &Path| {
        let is_file = fs::read_link(link).is_ok_and(|file| file.is_absolute() && !file.starts_with("/dev"));
        let info = link.to_string_lossy().replace("/fd/", "/fdinfo/");
        is_file && flags(&fs::read_to_string(info).unwrap_or_default()) & O_DSYNC != 0
    };
    open.flatten().flatten().filter(|entry| is_synchronous(&entry.path())).count() as u64
}

fn flags(info: &str) -> u64 {
    let octal = info.lines().find_map(|line| line.strip_prefix("flags:"));
    octal.and_then(|octal| u64::from_str_radix(octal.trim(), 8).ok()).unwrap_or(0)
}

fn perf(pids: &[u32], time: Duration, file: &Path) -> Result<()> {
    let events = Counter::perf_events()?.join(",");
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let status = Command::new("perf")
        .args(["stat", "-x", ";", "-e", &events, "-p", &pids.join(","), "-o"])
        .arg(file)
        .args(["--", "sleep", &time.as_secs_f64().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("`perf` cannot be run")?;
    ensure!(status.success(), "`perf stat` ended with {status}; run as root, or count with `--by strace`");
    Ok(())
}

fn strace(pids: &[u32], time: Duration, file: &Path) -> Result<()> {
    let names: Vec<&str> = FLUSHES.iter().chain(&OTHERS).copied().collect();
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-e", &format!("trace={}", names.join(",")), "-o"]).arg(file);
    for pid in pids {
        command.arg("-p").arg(pid.to_string());
    }
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("`strace` cannot be run; install it")?;
    sleep(time);
    if let Some(status) = child.try_wait()? {
        bail!("`strace` ended with {status} at once; run as root");
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).context("`strace` has a process id")?;
    kill_process(pid, Signal::INT)?;
    child.wait()?;
    Ok(())
}

/// Parses lines such as `12;;syscalls:sys_enter_fsync;…`.
fn of_perf(text: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let mut fields = line.split(';');
        let calls: u64 = fields.next()?.parse().ok()?;
        let name = fields.nth(1)?.strip_prefix("syscalls:sys_enter_")?;
        (calls > 0).then(|| (name.to_owned(), calls))
    };
    text.lines().filter_map(line).collect()
}

/// Parses the table of `strace -c`: share, seconds, microseconds per call, calls, errors if any, name.
fn of_strace(text: &str) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (name, calls) = (*words.last()?, words.get(3)?.parse().ok()?);
        (FLUSHES.contains(&name) || OTHERS.contains(&name)).then(|| (name.to_owned(), calls))
    };
    text.lines().filter_map(line).collect()
}

/// Runs a program and returns its output; fails if the program does.
fn quiet(program: &str, arguments: &[&str]) -> Result<String> {
    let said = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    ensure!(said.status.success(), "`{program}` ended with {}", said.status);
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// A temporary file for the counts, removed on drop.
struct Written(PathBuf);

impl Written {
    fn fresh() -> Written {
        Written(std::env::temp_dir().join(format!("imori-bench-counted-{}", std::process::id())))
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // A leftover file is small and recognizable by its name.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_perf_and_strace_write_is_read_alike() {
        let perf = "# started on Sat\n\n\
            1234;;syscalls:sys_enter_fdatasync;5000;100.00;;\n\
            0;;syscalls:sys_enter_fsync;5000;100.00;;\n\
            <not counted>;;syscalls:sys_enter_sync;0;0.00;;\n\
            7;;syscalls:sys_enter_pwrite64;5000;100.00;;\n";
        let strace = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n \
            90.00    1.000000         810      1234           fdatasync\n \
            10.00    0.100000           1         7         2 pwrite64\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    1.100000                  1241         2 total\n";
        let expected = [("fdatasync".to_owned(), 1_234), ("pwrite64".to_owned(), 7)];
        assert_eq!(of_perf(perf), expected);
        assert_eq!(of_strace(strace), expected);
        let counted = Counted { began: 0.0, seconds: 2.0, calls: of_perf(perf) };
        assert_eq!((counted.flushes(), counted.calls("pwrite64"), counted.calls("fsync")), (1_234, 7, 0));
    }

    #[test]
    fn files_whose_writes_wait_are_told_by_their_flags() {
        for (info, expected) in
            [("pos:\t0\nflags:\t02110001\nmnt_id:\t1\n", true), ("flags:\t0100001\n", false), ("", false)]
        {
            assert_eq!(flags(info) & O_DSYNC != 0, expected, "{info}");
        }
        assert_eq!(synchronous_files(&[std::process::id()]), 0);
    }
}
