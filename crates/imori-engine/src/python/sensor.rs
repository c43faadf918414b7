//! The process of a sensor. The kernel kills its group when the engine's process ends, however that happens: the
//! sensor's end of a pipe signals the group once the engine's end closes.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use imori_automation::value::{Map, Value};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::control::send_with;
use super::conversation::{receive, send};
use super::datastore::{DatastoreAnswer, DatastoreQuestion};
use crate::limits::{SENSOR_FRAME_BYTES_MAX, SENSOR_STOP_TIME};

/// A sensor to run.
#[derive(Debug, Clone)]
pub struct SensorProgram {
    /// The name of its pack.
    pub pack: String,
    /// The Python of the pack's virtual environment.
    pub python: PathBuf,
    /// The folder of the pack.
    pub pack_folder: PathBuf,
    /// The file with the sensor's class.
    pub entry_point: PathBuf,
    /// The name of the class.
    pub class_name: String,
    /// The configuration of the pack.
    pub config: Map,
    /// Seconds between two polls of a polling sensor.
    pub poll_interval: Option<f64>,
    /// The level of its loggers, such as `info`.
    pub log_level: String,
    /// The triggers that rules wait for.
    pub triggers: Vec<Map>,
    /// Environment variables beyond those of the hosts.
    pub environment: BTreeMap<String, String>,
    /// The token that is among these variables.
    pub token: Option<String>,
}

/// The process of a sensor, which leads a group. Its group is killed when this is dropped.
#[derive(Debug)]
pub struct SensorProcess {
    child: Child,
    pid: Pid,
    /// Becomes readable at the end, before the process is waited for: its number is still its own then.
    pidfd: Option<Receiver>,
    /// Kept for its end.
    _lifeline: OwnedFd,
}

/// The engine's ends of what a sensor reads and writes.
#[derive(Debug)]
pub struct SensorEnds {
    /// What the sensor asks.
    pub questions: SensorQuestions,
    /// What the sensor is told.
    pub commands: SensorCommands,
    /// Standard output.
    pub stdout: Option<ChildStdout>,
    /// Standard error.
    pub stderr: Option<ChildStderr>,
}

/// The socket for questions of a sensor.
#[derive(Debug)]
pub struct SensorQuestions(UnixStream);

/// The socket for commands to a sensor.
#[derive(Debug)]
pub struct SensorCommands(UnixStream);

/// A question of a sensor.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SensorQuestion {
    /// The sensor is set up and begins to run.
    Ready,
    /// A question to the datastore.
    Datastore(DatastoreQuestion),
    /// An event.
    Dispatch(SensorEvent),
}

/// An event of a sensor.
#[derive(Debug, Deserialize)]
pub struct SensorEvent {
    /// The trigger: its reference, or an object with `ref`, `type` and `parameters`, or `pack` and `name`.
    pub trigger: Value,
    /// The payload; none is an empty one.
    #[serde(default)]
    pub payload: Value,
}

/// The answer to a question of a sensor.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SensorAnswer {
    /// It is done, or what the datastore has.
    Answer(DatastoreAnswer),
    /// It cannot be done now.
    Error(String),
    /// The trigger of an event is unknown.
    Unknown(String),
    /// The payload of an event does not fit its trigger type, and the event is dropped.
    Invalid(String),
}

/// What a sensor is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SensorCommand {
    /// A trigger that a rule waits for.
    Add(Map),
    /// The id of a trigger that no rule waits for any more.
    Remove(String),
    /// It has to end, after its `cleanup`.
    Stop {},
}

#[derive(Serialize)]
struct Request<'a> {
    pack: &'a str,
    class_name: &'a str,
    entry_point: &'a Path,
    config: &'a Map,
    poll_interval: Option<f64>,
    log_level: &'a str,
    frame_limit: usize,
    triggers: &'a [Map],
}

impl SensorProcess {
    /// Starts the process; [`SensorCommands::request`] tells it what to run.
    pub(super) fn start(
        program: &SensorProgram,
        sources: &Path,
        environment: &BTreeMap<String, String>,
    ) -> io::Result<(SensorProcess, SensorEnds)> {
        let (commands, their_commands) = StdUnixStream::pair()?;
        let (questions, their_questions) = StdUnixStream::pair()?;
        let (their_lifeline, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        send_with(commands.as_fd(), b"d", &[their_questions.as_fd(), their_lifeline.as_fd()])?;
        let mut child = Command::new(&program.python)
            .arg("-u")
            .arg(sources.join("imori_host/sensor.py"))
            .arg(&program.pack_folder)
            .env_clear()
            .envs(environment)
            .envs(&program.environment)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(their_commands)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let number = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let pid = number.ok_or_else(|| io::Error::other("the process has no number"))?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from);
        let pidfd = pidfd.and_then(Receiver::from_owned_fd_unchecked).ok();
        commands.set_nonblocking(true)?;
        questions.set_nonblocking(true)?;
        let ends = SensorEnds {
            questions: SensorQuestions(UnixStream::from_std(questions)?),
            commands: SensorCommands(UnixStream::from_std(commands)?),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
        };
        Ok((SensorProcess { child, pid, pidfd, _lifeline: lifeline }, ends))
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits for its end, and kills what it has left behind in its group.
    ///
    /// # Errors
    /// The system cannot tell how it ended.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        if let Some(pidfd) = &self.pidfd {
            pidfd.readable().await?;
            // It fails if nothing is left.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        self.child.wait().await
    }

    /// Waits for the end of a sensor that was sent [`SensorCommand::Stop`]. One that does not hear it, because it has not
    /// begun to run, is sent a signal after a time; the group of one that ignores both is killed.
    ///
    /// # Errors
    /// The system cannot tell how it ended.
    pub async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Ok(ended) = timeout(SENSOR_STOP_TIME.min(grace), self.ended()).await {
            return ended;
        }
        // It fails if the process has ended.
        let _ = kill_process(self.pid, Signal::TERM);
        match timeout(grace, self.ended()).await {
            Ok(ended) => ended,
            Err(_) => {
                let _ = kill_process_group(self.pid, Signal::KILL);
                self.ended().await
            }
        }
    }
}

impl Drop for SensorProcess {
    fn drop(&mut self) {
        // `None` once it was waited for: its number may be another's then.
        if self.child.id().is_some() {
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }
}

impl SensorQuestions {
    /// The next question; the error inside is for one that is no question.
    ///
    /// # Errors
    /// The sensor has closed the socket, or sent a frame that is too long.
    pub async fn next(&mut self) -> io::Result<Result<SensorQuestion, String>> {
        let json = receive(&mut self.0, SENSOR_FRAME_BYTES_MAX).await?;
        Ok(serde_json::from_slice(&json).map_err(|error| format!("the engine does not take this: {error}")))
    }

    /// Answers the last question.
    ///
    /// # Errors
    /// The sensor has closed the socket.
    pub async fn answer(&mut self, answer: &SensorAnswer) -> io::Result<()> {
        send(&mut self.0, &serde_json::to_vec(answer)?).await
    }
}

impl SensorCommands {
    /// Tells the process what to run.
    ///
    /// # Errors
    /// The sensor has closed the socket.
    pub async fn request(&mut self, program: &SensorProgram) -> io::Result<()> {
        let request = Request {
            pack: &program.pack,
            class_name: &program.class_name,
            entry_point: &program.entry_point,
            config: &program.config,
            poll_interval: program.poll_interval,
            log_level: &program.log_level,
            // The frame has more than the payload.
            frame_limit: SENSOR_FRAME_BYTES_MAX - 1_024,
            triggers: &program.triggers,
        };
        send(&mut self.0, &serde_json::to_vec(&request)?).await
    }

    /// Tells the sensor of a trigger.
    ///
    /// # Errors
    /// The sensor has closed the socket.
    pub async fn tell(&mut self, command: &SensorCommand) -> io::Result<()> {
        send(&mut self.0, &serde_json::to_vec(command)?).await
    }
}
