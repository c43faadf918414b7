//! `guard`: a process between the comparison and a broker that ends the broker and all its
//! descendants once the comparison has ended, for whatever reason.
//!
//! The guard waits for the end of its standard input, which the kernel closes even if the
//! comparison is killed. It adopts orphans, to find daemons that the broker leaves behind, and it
//! has its own process group, so that Ctrl-C does not reach it.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use imori_bench::amount::duration;
use imori_bench::probe::process::{is_running, tree};
use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group, set_child_subreaper};

/// Interval between checks whether a process has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time for remaining processes to end before they are killed.
const REST_GRACE: Duration = Duration::from_secs(2);

/// Runs a program until standard input ends, then ends it and all its descendants.
#[derive(Debug, Clone, Args)]
pub struct GuardArgs {
    /// The folder it works in and writes its output to; removed at the end.
    #[arg(long)]
    pub(crate) folder: PathBuf,
    /// A command for the shell that ends it, tried before signals.
    #[arg(long)]
    pub(crate) stop: Option<String>,
    /// How long it may take to end before it is killed.
    #[arg(long, value_parser = duration)]
    pub(crate) grace: Duration,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
}

/// File in the guarded program's folder that receives its output.
pub(crate) const OUTPUT: &str = "output.log";

/// Starts the program, prints its process id on standard output, and guards it.
pub(crate) fn run(args: &GuardArgs) -> Result<()> {
    set_child_subreaper(Some(getpid())).context("orphans cannot be adopted")?;
    let mut child = start(args)?;
    // If the comparison has already ended, this write fails and the end of input follows at once.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{}", child.id()).and_then(|()| out.flush());
    wait_for_the_end_of_input();
    if let Some(stop) = &args.stop {
        run_stop(stop, args.grace);
    }
    end(&mut child, args.grace);
    end_the_rest(REST_GRACE);
    // A leftover folder is in the directory for temporary files.
    let _ = fs::remove_dir_all(&args.folder);
    Ok(())
}

fn start(args: &GuardArgs) -> Result<Child> {
    let (program, arguments) = args.command.split_first().context("no program is named")?;
    let output = File::create(args.folder.join(OUTPUT))
        .with_context(|| format!("`{}` cannot be written to", args.folder.display()))?;
    Command::new(program)
        .args(arguments)
        .current_dir(&args.folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .with_context(|| format!("`{program}` cannot be started"))
}

/// Runs the stop command. Its exit code does not matter, because signals follow if the program continues.
fn run_stop(stop: &str, grace: Duration) {
    let command = ["-c", stop];
    let quiet = Command::new("sh").args(command).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    if let Ok(mut stop) = quiet {
        waited(grace, || !matches!(stop.try_wait(), Ok(None)));
    }
}

/// Blocks until standard input is closed; bytes are ignored, because none are ever sent.
fn wait_for_the_end_of_input() {
    let mut buffer = [0; 64];
    let mut input = std::io::stdin().lock();
    while matches!(input.read(&mut buffer), Ok(1..)) {}
}

/// Ends the program and its process group, by SIGTERM first.
fn end(child: &mut Child, grace: Duration) {
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, grace)] {
        if let Some(group) = pid(child.id()) {
            // The group may already be gone.
            let _ = kill_process_group(group, signal);
        }
        if waited(patience, || !matches!(child.try_wait(), Ok(None))) {
            return;
        }
    }
}

/// Ends descendants that have left the process group, such as Erlang's port mapper.
fn end_the_rest(grace: Duration) {
    for signal in [Signal::TERM, Signal::KILL] {
        for orphan in running_descendants() {
            if let Some(orphan) = pid(orphan) {
                let _ = kill_process(orphan, signal);
            }
        }
        if waited(grace, || running_descendants().is_empty()) {
            return;
        }
    }
}

/// The descendants of this process that have not ended.
pub(crate) fn running_descendants() -> Vec<u32> {
    let own = std::process::id();
    let mut found = tree(&[own]).unwrap_or_default();
    found.retain(|pid| *pid != own && is_running(*pid));
    found
}

fn waited(patience: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !is_over() {
        if Instant::now() >= deadline {
            return false;
        }
        sleep(LOOK_EVERY);
    }
    true
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}
