//! A process of an action: its group is killed as a whole, and a later broker finds it again by its pid and the time
//! of its start. The process waits until its identity is on file and then marks its start, so that a later broker knows
//! of each action whether it has begun.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::{interval, sleep, timeout};

use crate::limits::{KILL_GRACE, OUTPUT_CHECK};

/// The file in a run's folder that the process of an action makes before it begins.
pub(crate) const STARTED_FILE: &str = "started";

/// The file in a run's folder that has the identity of an action's process.
pub(crate) const IDENTITY_FILE: &str = "pid";

/// A running process and its group.
pub(crate) struct Process {
    pid: Pid,
    handle: Handle,
}

enum Handle {
    /// A child of this process.
    Child(Box<Child>),
    /// A process that an earlier broker started: its descriptor is readable once it has ended, and the receiver of a
    /// pipe is what can wait for that.
    Found(Receiver),
}

/// How a process ended.
#[derive(Debug, Clone)]
pub(crate) enum Ended {
    /// By itself.
    Exited,
    /// It was killed, because its time was over.
    TimedOut,
    /// It was killed, because a user canceled it.
    Canceled,
    /// It was killed, because it printed too much.
    Flooded,
    /// It cannot be waited for.
    Lost(String),
}

impl Process {
    /// Starts a command, which has a process group of its own, and notes its identity in this file. A command whose
    /// standard input is a pipe is told by a line that it may begin; the end of the pipe tells it that the broker died.
    ///
    /// # Errors
    /// The process cannot be started, or its identity not be written.
    pub(crate) fn start(mut command: Command, identity: &Path) -> io::Result<Process> {
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process has ended"))?;
        note_identity(pid, identity)?;
        if let Some(gate) = child.stdin.take() {
            // It fails if the process has been killed, which its end tells.
            let _ = File::from(gate.into_owned_fd()?).write_all(b"\n");
        }
        Ok(Process { pid, handle: Handle::Child(Box::new(child)) })
    }

    /// The process whose identity an earlier broker noted in this file, if it still runs.
    pub(crate) fn find(identity: &Path) -> Option<Process> {
        let noted = fs::read_to_string(identity).ok()?;
        let (pid, started) = noted.trim().split_once(' ')?;
        let pid = Pid::from_raw(pid.parse().ok()?)?;
        let descriptor = pidfd_open(pid, PidfdFlags::NONBLOCK).ok()?;
        // Read after the descriptor was opened, so that both are of one process.
        let is_same = start_ticks(pid).is_some_and(|ticks| started.parse() == Ok(ticks));
        let handle = Receiver::from_owned_fd_unchecked(descriptor).ok().filter(|_| is_same)?;
        Some(Process { pid, handle: Handle::Found(handle) })
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub(crate) async fn ended(&mut self) -> io::Result<()> {
        self.handle.ended().await
    }

    /// Waits for its end, and kills its group if it takes too long, is canceled or prints too much.
    pub(crate) async fn wait(
        mut self,
        limit: Duration,
        mut canceled: watch::Receiver<bool>,
        prints_too_much: impl Fn() -> bool,
    ) -> Ended {
        let mut checks = interval(OUTPUT_CHECK);
        checks.tick().await;
        let deadline = sleep(limit);
        tokio::pin!(deadline);
        let end = loop {
            tokio::select! {
                ended = self.handle.ended() => return match ended {
                    Ok(()) => Ended::Exited,
                    Err(error) => Ended::Lost(error.to_string()),
                },
                () = &mut deadline => break Ended::TimedOut,
                () = is_true(&mut canceled) => break Ended::Canceled,
                _ = checks.tick() => if prints_too_much() { break Ended::Flooded },
            }
        };
        self.kill().await;
        end
    }

    async fn kill(&mut self) {
        // The group may be gone.
        let _ = kill_process_group(self.pid, Signal::TERM);
        if timeout(KILL_GRACE, self.handle.ended()).await.is_err() {
            let _ = kill_process_group(self.pid, Signal::KILL);
            let _ = timeout(KILL_GRACE, self.handle.ended()).await;
        }
        // Members that ignored the first signal while their leader ended.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }
}

impl Handle {
    async fn ended(&mut self) -> io::Result<()> {
        match self {
            Handle::Child(child) => child.wait().await.map(drop),
            Handle::Found(descriptor) => descriptor.readable().await,
        }
    }
}

/// Ends once the value is true; never if its sender is gone.
async fn is_true(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|is_set| *is_set).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Notes the identity of a process in this file, for [`Process::find`].
///
/// # Errors
/// The file cannot be written.
pub(crate) fn note_identity(pid: Pid, identity: &Path) -> io::Result<()> {
    let started = start_ticks(pid).unwrap_or_default();
    fs::write(identity, format!("{} {started}\n", pid.as_raw_nonzero()))
}

/// What tells one start of the machine from another. Processes and files that were not flushed survive none.
pub(crate) fn boot_id() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    let read = || fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    ID.get_or_init(|| read().trim().to_owned())
}

/// The time at which a process started, in the kernel's ticks since the machine did.
fn start_ticks(pid: Pid) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name in parentheses may hold anything; field 22 is the twentieth after it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}
