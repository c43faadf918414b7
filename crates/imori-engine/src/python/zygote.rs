//! A Python that has imported what actions need and forks for each of them.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::control::{Control, DESCRIPTORS, Order, Report};
use crate::limits::{PYTHON_COMPLAINT_BYTES_MAX, ZYGOTE_START_TIME};

/// A Python that runs, or has ended.
pub(super) struct Zygote {
    control: Control,
    state: Mutex<State>,
    idle_time: Duration,
}

struct State {
    /// The waiters for reports about actions.
    actions: HashMap<u64, Reports>,
    next: u64,
    leases: usize,
    idle_since: Instant,
    is_closing: bool,
    is_over: bool,
    end: ZygoteEnd,
}

/// How a Python ended.
#[derive(Debug, Clone, Default)]
pub(super) struct ZygoteEnd {
    /// What it complained of, or how it ended.
    pub(super) complaint: String,
    /// It was killed, so that another one may well start.
    pub(super) is_killed: bool,
}

struct Reports {
    pid: Option<oneshot::Sender<Result<i32, String>>>,
    status: oneshot::Sender<i32>,
}

/// The right to fork from a Python, which does not end for being idle meanwhile.
pub(super) struct Lease {
    zygote: Arc<Zygote>,
}

/// A process that waits for its request.
pub(super) struct Forked {
    pub(super) id: u64,
    pub(super) pid: i32,
    /// Its exit code; ends without one if the Python ends first.
    pub(super) status: oneshot::Receiver<i32>,
}

/// Why there is no process.
pub(super) enum ForkError {
    /// The Python has ended.
    Over(ZygoteEnd),
    /// The system has no room for one more.
    System(String),
}

impl Zygote {
    /// Starts a Python. It ends when it has not been used for a time, when it is closed, or with the engine.
    pub(super) fn start(
        python: &Path,
        sources: &Path,
        pack_folder: &Path,
        environment: &BTreeMap<String, String>,
        idle_time: Duration,
    ) -> io::Result<Arc<Zygote>> {
        let (control, theirs) = Control::pair()?;
        let child = Command::new(python)
            .arg("-u")
            .arg(sources.join("imori_host/zygote.py"))
            .arg(pack_folder)
            .env_clear()
            .envs(environment)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let state = State {
            actions: HashMap::new(),
            next: 0,
            leases: 0,
            idle_since: Instant::now(),
            is_closing: false,
            is_over: false,
            end: ZygoteEnd::default(),
        };
        let zygote = Arc::new(Zygote { control, state: Mutex::new(state), idle_time });
        tokio::spawn(Arc::clone(&zygote).attend(child));
        Ok(zygote)
    }

    /// The right to use it, unless it ends.
    pub(super) fn lease(self: &Arc<Zygote>) -> Option<Lease> {
        let mut state = self.state();
        if state.is_closing || state.is_over {
            return None;
        }
        state.leases += 1;
        Some(Lease { zygote: Arc::clone(self) })
    }

    /// The start of its idle time; `None` while actions run.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.leases == 0).then_some(state.idle_since)
    }

    /// Whether it has ended, or is about to.
    pub(super) fn is_over(&self) -> bool {
        let state = self.state();
        state.is_closing || state.is_over
    }

    /// Lets it end. Actions that run go on.
    pub(super) fn close(&self) {
        self.state().is_closing = true;
        self.control.close();
    }

    async fn attend(self: Arc<Zygote>, mut child: Child) {
        let stderr = child.stderr.take();
        let complaint = async {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = (&mut stderr).take(PYTHON_COMPLAINT_BYTES_MAX as u64).read_to_end(&mut text).await;
                let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        };
        let (complaint, ()) = tokio::join!(complaint, self.receive_reports());
        let ending = child.wait().await;
        let mut state = self.state();
        state.is_over = true;
        let is_killed = ending.as_ref().is_ok_and(|status| status.signal().is_some());
        let complaint = match ending {
            Ok(status) if complaint.is_empty() => status.to_string(),
            _ => complaint,
        };
        state.end = ZygoteEnd { complaint, is_killed };
        state.actions.clear();
    }

    async fn receive_reports(&self) {
        loop {
            let idle_end = self.idle_since().unwrap_or_else(Instant::now) + self.idle_time;
            tokio::select! {
                report = self.control.receive() => match report {
                    Ok(Some(report)) => self.take_report(report),
                    Ok(None) | Err(_) => return,
                },
                () = tokio::time::sleep_until(idle_end) => self.close_if_idle(),
            }
        }
    }

    fn take_report(&self, report: Report) {
        let mut state = self.state();
        if let Some(status) = report.status {
            if let Some(reports) = state.actions.remove(&report.id) {
                // The waiter is gone.
                let _ = reports.status.send(status);
            }
        } else if let Some(pid) = state.actions.get_mut(&report.id).and_then(|reports| reports.pid.take()) {
            let answer = report.pid.ok_or_else(|| report.error.unwrap_or_default());
            let _ = pid.send(answer);
        }
    }

    fn close_if_idle(&self) {
        let mut state = self.state();
        if state.leases == 0 && state.idle_since.elapsed() >= self.idle_time {
            state.is_closing = true;
            drop(state);
            self.control.close();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Forks a process that has these descriptors as standard output, standard error and its socket.
    pub(super) async fn fork(
        &self,
        descriptors: &[BorrowedFd<'_>; DESCRIPTORS],
    ) -> Result<Forked, ForkError> {
        let (pid_sender, pid) = oneshot::channel();
        let (status_sender, status) = oneshot::channel();
        let id = {
            let mut state = self.zygote.state();
            if state.is_over {
                return Err(ForkError::Over(state.end.clone()));
            }
            state.next += 1;
            let id = state.next;
            state.actions.insert(id, Reports { pid: Some(pid_sender), status: status_sender });
            id
        };
        // If it cannot be sent, the Python has ended, which the report says.
        let _ = self.zygote.control.send(&Order::Run { run: id }, descriptors).await;
        match tokio::time::timeout(ZYGOTE_START_TIME, pid).await {
            Ok(Ok(Ok(pid))) => Ok(Forked { id, pid, status }),
            Ok(Ok(Err(text))) => Err(ForkError::System(text)),
            Ok(Err(_)) => Err(ForkError::Over(self.zygote.state().end.clone())),
            Err(_) => {
                self.zygote.close();
                let complaint = format!("it has not started in {} s", ZYGOTE_START_TIME.as_secs());
                Err(ForkError::Over(ZygoteEnd { complaint, is_killed: false }))
            }
        }
    }

    /// Sends a signal to everything of an action's session. The error is for a Python that has ended.
    pub(super) fn signal(&self, id: u64, signal: i32) -> io::Result<()> {
        self.zygote.control.send_now(&Order::Signal { id, signal })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.zygote.state();
        state.leases -= 1;
        state.idle_since = Instant::now();
    }
}
