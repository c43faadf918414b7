//! Runs one action: its process, what it writes and says, and its end.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{interval, sleep, timeout};

use super::action::PythonAction;
use super::conversation::converse;
use super::files::RunFiles;
use super::outcome::PythonOutcome;
use super::zygote::{ForkError, Lease};
use crate::limits::{OUTPUT_CHECK, OUTPUT_GRACE};
use crate::outputs::Outputs;
use crate::process::{IDENTITY_FILE, note_identity};

/// Runs an action in a process forked by this Python. Dropping the future ends the action.
pub(super) async fn run(
    lease: Lease,
    action: &PythonAction,
    request: &[u8],
    kill_grace: Duration,
) -> Result<PythonOutcome, ForkError> {
    let system = |error: io::Error| ForkError::System(format!("an action has no outputs: {error}"));
    let (mut outputs, writers) = Outputs::record(&action.folder, action.output_bytes_max).map_err(system)?;
    let forked = fork(lease, &action.folder, writers).await;
    if forked.is_err() {
        // The next attempt has the same files.
        outputs.settle().await;
    }
    let (socket, process) = forked?;
    let mut process = Guard { process: Some(process), kill_grace };
    let mut said = None;
    let exchange = converse(socket, request, &*action.datastore, &mut said);
    let end = process.ended_within(action.timeout, &outputs);
    let Ending { exit_code, is_timed_out } = both(exchange, end).await;
    drop(process);
    outputs.settle().await;
    outputs.wait_for_place(&action.place).await;
    let files = RunFiles(&action.folder);
    let said = said.or_else(|| files.result(&action.execution_id));
    Ok(PythonOutcome {
        exit_code: exit_code.or(said.as_ref().map(|said| said.exit_code)),
        status: said.as_ref().and_then(|said| said.status),
        result: said.and_then(|said| said.result),
        recorded: outputs.recorded(u64::MAX),
        is_timed_out,
        timeout_s: action.timeout.as_secs_f64(),
    })
}

/// Runs both to the end of the second, and the first not much longer: processes that the action left behind may hold
/// what it reads open for ever.
async fn both<T>(exchange: impl Future<Output = ()>, end: impl Future<Output = T>) -> T {
    tokio::pin!(exchange, end);
    let mut is_exchanged = false;
    let ending = loop {
        tokio::select! {
            ending = &mut end => break ending,
            () = &mut exchange, if !is_exchanged => is_exchanged = true,
        }
    };
    if !is_exchanged {
        // What was said until then counts.
        let _ = timeout(OUTPUT_GRACE, exchange).await;
    }
    ending
}

/// Forks a process, notes its identity in the folder, and returns the socket to it. It waits for its request.
async fn fork(
    lease: Lease,
    folder: &Path,
    [stdout, stderr]: [OwnedFd; 2],
) -> Result<(UnixStream, Process), ForkError> {
    let system = |error: io::Error| ForkError::System(format!("an action has no descriptors: {error}"));
    let (socket, theirs) = sockets().map_err(system)?;
    let forked = lease.fork(&[stdout.as_fd(), stderr.as_fd(), theirs.as_fd()]).await?;
    let pid =
        Pid::from_raw(forked.pid).ok_or_else(|| ForkError::System("the process has no number".to_owned()))?;
    let noted = note_identity(pid, &folder.join(IDENTITY_FILE));
    noted.map_err(|error| ForkError::System(format!("an action's process cannot be noted: {error}")))?;
    // It waits for its request, so that the number is still its own.
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
    // It becomes readable at the end, as a pipe does.
    let pidfd = pidfd.and_then(Receiver::from_owned_fd_unchecked).ok();
    Ok((socket, Process { lease, id: forked.id, pid, pidfd, status: Some(forked.status) }))
}

fn sockets() -> io::Result<(UnixStream, OwnedFd)> {
    let (socket, theirs) = StdUnixStream::pair()?;
    socket.set_nonblocking(true)?;
    Ok((UnixStream::from_std(socket)?, theirs.into()))
}

/// How a process ended.
#[derive(Default)]
struct Ending {
    /// `None` if the exit code is lost.
    exit_code: Option<i32>,
    /// It was killed for the time it took.
    is_timed_out: bool,
}

/// Ends a process without a waiter.
struct Guard {
    process: Option<Process>,
    kill_grace: Duration,
}

impl Guard {
    /// Waits for the end, and kills what takes longer than this time or writes too much.
    async fn ended_within(&mut self, time: Duration, outputs: &Outputs) -> Ending {
        let Some(process) = &mut self.process else { return Ending::default() };
        let mut checks = interval(OUTPUT_CHECK);
        checks.tick().await;
        let deadline = sleep(time);
        tokio::pin!(deadline);
        let is_timed_out = loop {
            tokio::select! {
                exit_code = process.ended() => {
                    self.process = None;
                    return Ending { exit_code, is_timed_out: false };
                }
                () = &mut deadline => break true,
                _ = checks.tick() => if outputs.are_over() { break false },
            }
        };
        let exit_code = process.end(self.kill_grace).await;
        self.process = None;
        Ending { exit_code, is_timed_out }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(mut process), Ok(runtime)) = (self.process.take(), Handle::try_current()) else { return };
        let kill_grace = self.kill_grace;
        runtime.spawn(async move { process.end(kill_grace).await });
    }
}

/// The process of an action, which leads a session.
struct Process {
    lease: Lease,
    id: u64,
    pid: Pid,
    pidfd: Option<Receiver>,
    /// `None` when the Python that forked it has ended.
    status: Option<oneshot::Receiver<i32>>,
}

impl Process {
    /// Waits for its end; `None` if the exit code is lost.
    async fn ended(&mut self) -> Option<i32> {
        if let Some(status) = &mut self.status {
            if let Ok(exit_code) = status.await {
                return Some(exit_code);
            }
            self.status = None;
        }
        if let Some(pidfd) = &self.pidfd {
            // A system that cannot tell counts as an end.
            let _ = pidfd.readable().await;
        }
        None
    }

    /// Asks all of its session to end and, after a time, ends it.
    async fn end(&mut self, grace: Duration) -> Option<i32> {
        self.signal(Signal::TERM);
        let ending = timeout(grace, self.ended()).await;
        if ending.is_err() || self.status.is_none() {
            self.signal(Signal::KILL);
        }
        match ending {
            Ok(exit_code) => exit_code,
            Err(_) => timeout(grace, self.ended()).await.ok().flatten(),
        }
    }

    fn signal(&self, signal: Signal) {
        let is_told = self.status.is_some() && self.lease.signal(self.id, signal.as_raw()).is_ok();
        if !is_told {
            // It has ended if there is no such group.
            let _ = kill_process_group(self.pid, signal);
        }
    }
}
