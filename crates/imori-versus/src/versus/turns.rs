//! Runs the peers in turns, A B A B, one at a time, so that a slow phase of the machine affects all of them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use imori_bench::interrupt;
use imori_bench::progress::Progress;
use imori_bench::record::report::Report;
use rustix::process::{Pid, Signal, kill_process};

use crate::peers::found::Program;
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::Peer;
use crate::peers::running::{Running, pinned};
use crate::versus::comparison::{Comparison, Failure, Job, Turn};

/// Interval between checks whether a run has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A peer that can take part, with its program if it is started here.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    pub(crate) peer: Peer,
    pub(crate) found: Option<Program>,
}

/// Jobs that share one start of each peer.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) jobs: Vec<Job>,
    pub(crate) sides: Vec<Side>,
}

/// Runs every turn, and passes the comparison to `keep` after each one.
pub(crate) fn run(
    groups: &[Group],
    ours: &Ourselves,
    comparison: &mut Comparison,
    mut keep: impl FnMut(&Comparison) -> Result<()>,
) -> Result<()> {
    let rounds = comparison.settings.rounds;
    let runs_of = |group: &Group| group.sides.len() * group.jobs.len();
    let mut progress = Progress::new(rounds, groups.iter().map(runs_of).sum::<usize>() * rounds as usize);
    let mut done = 0;
    for turn in 1..=rounds {
        for (group, side) in groups.iter().flat_map(|group| group.sides.iter().map(move |side| (group, side)))
        {
            if interrupt::is_asked_for() {
                progress.clear();
                say("stopped by hand; what was measured until then is kept");
                return Ok(());
            }
            if let Err(error) = one(side, &group.jobs, turn, ours, comparison, &mut progress) {
                progress.clear();
                fail(comparison, side, turn, None, &error);
            }
            // A peer that did not start has no runs in this round.
            done += group.jobs.len();
            progress.done(done);
            keep(comparison)?;
        }
    }
    progress.clear();
    Ok(())
}

/// Starts a peer, runs all jobs against it, and stops it.
fn one(
    side: &Side,
    jobs: &[Job],
    turn: u32,
    ours: &Ourselves,
    comparison: &mut Comparison,
    progress: &mut Progress,
) -> Result<()> {
    let has_several = comparison.settings.jobs.len() > 1;
    let before = progress.runs_done();
    progress.begin(turn, &side.peer.name, jobs.first().filter(|_| has_several).map(|job| &*job.name));
    let cpus = comparison.settings.cpus_broker.clone();
    let running = Running::start(&side.peer, side.found.as_ref(), ours, cpus.as_deref())?;
    let facts = comparison.peers.iter_mut().find(|facts| facts.name == side.peer.name);
    if let Some(facts) = facts.filter(|facts| facts.configuration.is_empty()) {
        facts.configuration.clone_from(&running.configuration);
    }
    for (at, job) in jobs.iter().enumerate() {
        if interrupt::is_asked_for() {
            return Ok(());
        }
        if at > 0 {
            progress.done(before + at);
            progress.begin(turn, &side.peer.name, Some(&job.name));
        }
        let cpus = comparison.settings.cpus_client.as_deref();
        match measure(side, &running, job, ours, cpus, || progress.tick()) {
            Ok((report, exit_code)) => comparison.runs.push(Turn {
                peer: side.peer.name.clone(),
                turn,
                job: job.name.clone(),
                protocol: side.peer.protocol.word().to_owned(),
                exit_code,
                report,
            }),
            Err(error) => {
                progress.clear();
                fail(comparison, side, turn, Some(job.name.clone()), &error);
            }
        }
    }
    Ok(())
}

fn fail(comparison: &mut Comparison, side: &Side, turn: u32, job: Option<String>, error: &anyhow::Error) {
    let why = format!("{error:#}");
    say(&format!("{}: {why}", side.peer.name));
    comparison.failures.push(Failure { peer: side.peer.name.clone(), turn, job, why });
}

/// Runs a scenario in a process of its own and reads its report; calls `tick` often meanwhile.
pub(crate) fn measure(
    side: &Side,
    running: &Running,
    job: &Job,
    ours: &Ourselves,
    cpus: Option<&str>,
    tick: impl FnMut(),
) -> Result<(Report, i32)> {
    let (scenario, arguments) = job.arguments.split_first().context("a job has a scenario")?;
    let words = ours.words(pinned(cpus), scenario);
    let (program, before) = words.split_first().context("this program has a name")?;
    let file = ReportFile::fresh();
    let mut command = Command::new(program);
    command.args(before).args(arguments).args(side.peer.options(scenario, arguments));
    command.arg("--url").arg(&running.url).arg("--json").arg(&file.path);
    for pid in &running.pids {
        command.arg("--pid").arg(pid.to_string());
    }
    let (status, said) = ended(&mut command, &file, tick)
        .with_context(|| format!("`{program}` cannot be run; install what it names"))?;
    let Ok(json) = fs::read(&file.path) else {
        match said.is_empty() {
            true => bail!("it ended without a report, {status}"),
            false => bail!("{said}"),
        }
    };
    let report =
        serde_json::from_slice(&json).map_err(|error| anyhow!("its report cannot be read: {error}"))?;
    Ok((report, status.code().unwrap_or(-1)))
}

/// Runs a command to its end and returns its error output. It has its own process group, so that Ctrl-C reaches
/// it only once, through us: the first makes it report its results, a second would kill it.
fn ended(command: &mut Command, file: &ReportFile, mut tick: impl FnMut()) -> Result<(ExitStatus, String)> {
    let errors = File::create(&file.errors)?;
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).process_group(0);
    let mut child = command.spawn()?;
    let mut is_told = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if interrupt::is_asked_for() && !is_told {
            is_told = true;
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            // The process may have just ended.
            let _ = pid.map(|pid| kill_process(pid, Signal::INT));
        }
        tick();
        sleep(LOOK_EVERY);
    };
    Ok((status, fs::read_to_string(&file.errors).unwrap_or_default().trim().to_owned()))
}

/// Temporary files for a run's report and error output, removed on drop.
struct ReportFile {
    path: PathBuf,
    errors: PathBuf,
}

impl ReportFile {
    fn fresh() -> ReportFile {
        let name = format!("imori-bench-report-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = ReportFile { path: path.with_extension("json"), errors: path.with_extension("errors") };
        remove(&file.path);
        file
    }
}

impl Drop for ReportFile {
    fn drop(&mut self) {
        remove(&self.path);
        remove(&self.errors);
    }
}

/// Removes a file if it exists.
fn remove(file: &Path) {
    let _ = fs::remove_file(file);
}

/// Prints progress on standard error.
pub(crate) fn say(text: &str) {
    // A closed standard error is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{text}");
}
