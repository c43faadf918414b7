//! Commands: programs such as `git` and `pip` that the engine waits for, with a timeout and bounded output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Child;
use tokio::time::timeout;

use crate::limits::{COMMAND_ERROR_LINES_MAX, COMMAND_OUTPUT_BYTES_MAX};

/// Variables of the engine's own environment that would lead another Python or git astray.
const NOT_INHERITED: [&str; 7] = [
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_CONFIG_COUNT",
];

/// A program with its arguments.
#[derive(Debug, Clone)]
pub struct Command {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    time_max: Duration,
}

/// Why a command did not do its work.
#[derive(Debug)]
pub enum CommandError {
    /// The program cannot be started.
    NotStarted {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// It ended with another status than 0.
    Failed {
        /// The program with its arguments.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its output.
        output: String,
    },
    /// It took too long and was killed.
    TimedOut {
        /// The program with its arguments.
        command: String,
        /// The time that it had.
        time_max: Duration,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::NotStarted { program, reason } => {
                write!(f, "`{program}` cannot be started: {reason}; install it or put it on the PATH")
            }
            CommandError::Failed { command, status, output } if output.is_empty() => {
                write!(f, "`{command}` ended with {status}")
            }
            CommandError::Failed { command, status, output } => {
                write!(f, "`{command}` ended with {status}:\n{output}")
            }
            CommandError::TimedOut { command, time_max } => {
                write!(f, "`{command}` took longer than {} s and was killed", time_max.as_secs())
            }
        }
    }
}

impl std::error::Error for CommandError {}

impl Command {
    /// A program, by path or by a name on the PATH, that may run this long.
    pub fn new(program: impl Into<PathBuf>, time_max: Duration) -> Command {
        Command {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            environment: Vec::new(),
            time_max,
        }
    }

    /// With more arguments.
    #[must_use]
    pub fn with(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// In a folder.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Command {
        self.folder = Some(folder.to_owned());
        self
    }

    /// With a variable of its environment.
    #[must_use]
    pub fn with_variable(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Command {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Runs it to its end and returns the last bytes of its output, errors and all. It has no input. If the caller
    /// stops waiting, it is killed with all that it started.
    ///
    /// # Errors
    /// It cannot be started, fails, or takes too long.
    pub async fn output(self) -> Result<String, CommandError> {
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        NOT_INHERITED.iter().for_each(|name| _ = command.env_remove(name));
        command
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        let not_started = |error: std::io::Error| CommandError::NotStarted {
            program: self.program.display().to_string(),
            reason: error.to_string(),
        };
        let mut child = command.spawn().map_err(not_started)?;
        let group = Group::of(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = timeout(self.time_max, async {
            let (mut output, mut errors) = (Tail::default(), Tail::default());
            let status = async {
                let status = child.wait().await;
                // What the program left running would keep its output open.
                drop(group);
                status
            };
            let (status, (), ()) = tokio::join!(status, output.fill(stdout), errors.fill(stderr));
            output.bytes.extend(errors.bytes);
            (status, String::from_utf8_lossy(&output.bytes).into_owned())
        });
        match ended.await {
            Err(_) => Err(CommandError::TimedOut { command: self.shown(), time_max: self.time_max }),
            Ok((Err(error), _)) => Err(not_started(error)),
            Ok((Ok(status), output)) if status.success() => Ok(output),
            Ok((Ok(status), output)) => {
                Err(CommandError::Failed { command: self.shown(), status, output: last_lines(&output) })
            }
        }
    }

    /// The program and its arguments; passwords in addresses are left out.
    fn shown(&self) -> String {
        let words = self.arguments.iter().map(|argument| without_password(&argument.to_string_lossy()));
        std::iter::once(self.program.display().to_string()).chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// An address without user and password.
pub(crate) fn without_password(address: &str) -> String {
    match address
        .split_once("://")
        .map(|(scheme, rest)| (scheme, rest, rest.split('/').next().unwrap_or(rest)))
    {
        Some((scheme, rest, host)) if host.contains('@') => {
            let path = rest.get(host.len()..).unwrap_or_default();
            format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or_default())
        }
        _ => address.to_owned(),
    }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<_> = output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let first = lines.len().saturating_sub(COMMAND_ERROR_LINES_MAX);
    lines.get(first..).unwrap_or_default().join("\n")
}

/// The process group of a child, killed when its waiter is dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Group {
        Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group is empty if all its processes have ended.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    async fn fill(&mut self, stream: Option<impl AsyncRead + Unpin>) {
        let Some(mut stream) = stream else { return };
        let mut buffer = vec![0; 8 << 10];
        while let Ok(count @ 1..) = stream.read(&mut buffer).await {
            self.bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
            if self.bytes.len() > 2 * COMMAND_OUTPUT_BYTES_MAX {
                self.bytes.drain(..self.bytes.len() - COMMAND_OUTPUT_BYTES_MAX);
            }
        }
        let excess = self.bytes.len().saturating_sub(COMMAND_OUTPUT_BYTES_MAX);
        self.bytes.drain(..excess);
    }
}
