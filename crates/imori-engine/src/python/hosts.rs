//! The Pythons of all packs: each is started when the first action of its pack runs, and ends when it is not used.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::action::PythonAction;
use super::outcome::{PythonError, PythonOutcome};
use super::run::run;
use super::sensor::{SensorEnds, SensorProcess, SensorProgram};
use super::sources::write_sources;
use super::zygote::{ForkError, Lease, Zygote};
use crate::limits::{KILL_GRACE, ZYGOTE_IDLE_TIME, ZYGOTES_IDLE_MAX};

/// Pythons that end while they wait or are killed at their start, one after the other, before an action is given up.
const ATTEMPTS: usize = 5;

/// Runs Python actions. It needs a runtime of tokio with I/O and time.
pub struct PythonHosts {
    sources: PathBuf,
    options: PythonOptions,
    zygotes: Mutex<HashMap<Key, Arc<Zygote>>>,
}

/// How Python actions run.
#[derive(Clone, Debug)]
pub struct PythonOptions {
    /// The variables that every Python starts with.
    pub environment: BTreeMap<String, String>,
    /// Pythons that may wait for actions.
    pub idle_max: usize,
    /// How long each may wait.
    pub idle_time: Duration,
    /// Time between `SIGTERM` and `SIGKILL`.
    pub kill_grace: Duration,
}

/// What makes two actions need different Pythons.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    python: PathBuf,
    pack_folder: PathBuf,
    environment: BTreeMap<String, String>,
}

impl PythonOptions {
    /// The usual limits, with this process's variables except the broker's own, which may hold secrets.
    pub fn new(environment: impl Iterator<Item = (OsString, OsString)>) -> PythonOptions {
        let environment = environment
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| !name.starts_with("IMORI_"))
            .collect();
        PythonOptions {
            environment,
            idle_max: ZYGOTES_IDLE_MAX,
            idle_time: ZYGOTE_IDLE_TIME,
            kill_grace: KILL_GRACE,
        }
    }
}

impl PythonHosts {
    /// Writes the Python files of the engine below a folder.
    ///
    /// # Errors
    /// The folder cannot be written to.
    pub fn new(folder: &Path, options: PythonOptions) -> io::Result<PythonHosts> {
        let sources = std::path::absolute(write_sources(folder)?)?;
        Ok(PythonHosts { sources, options, zygotes: Mutex::default() })
    }

    /// The folder that `st2common` and the other packages are imported from, for tests of packs.
    pub fn sources(&self) -> &Path {
        &self.sources
    }

    /// Runs an action to its end. Dropping the future ends the action: `SIGTERM`, then `SIGKILL`.
    ///
    /// # Errors
    /// It did not run: the Python of the pack does not start, the parameters are too large, or the system has no room
    /// for one more process. An action that ran and failed is an outcome.
    pub async fn run(&self, action: &PythonAction) -> Result<PythonOutcome, PythonError> {
        let request = action.request()?;
        let mut complaint = String::new();
        for _ in 0..ATTEMPTS {
            let (lease, is_new) = self.lease(action)?;
            match run(lease, action, &request, self.options.kill_grace).await {
                Ok(outcome) => return Ok(outcome),
                Err(ForkError::System(text)) => return Err(PythonError::System(text)),
                Err(ForkError::Over(end)) => {
                    complaint = end.complaint;
                    if is_new && !end.is_killed {
                        break;
                    }
                }
            }
        }
        Err(start_error(action, &complaint))
    }

    /// Starts the process of a sensor, which ends when what is returned is dropped.
    ///
    /// # Errors
    /// The Python of the pack does not start.
    pub fn start_sensor(&self, program: &SensorProgram) -> io::Result<(SensorProcess, SensorEnds)> {
        SensorProcess::start(program, &self.sources, &self.options.environment)
    }

    /// Time between `SIGTERM` and `SIGKILL`.
    pub fn kill_grace(&self) -> Duration {
        self.options.kill_grace
    }

    /// Ends the Pythons of a pack, whose environment has changed. Actions that run go on.
    pub fn end_pack(&self, pack_folder: &Path) {
        self.zygotes().retain(|key, zygote| {
            let stays = key.pack_folder != pack_folder;
            if !stays {
                zygote.close();
            }
            stays
        });
    }

    fn lease(&self, action: &PythonAction) -> Result<(Lease, bool), PythonError> {
        let key = Key {
            python: action.python.clone(),
            pack_folder: action.pack_folder.clone(),
            environment: action.start_environment(),
        };
        let mut zygotes = self.zygotes();
        zygotes.retain(|_, zygote| !zygote.is_over());
        if let Some(lease) = zygotes.get(&key).and_then(Zygote::lease) {
            return Ok((lease, false));
        }
        self.make_room(&mut zygotes);
        let mut environment = self.options.environment.clone();
        environment.extend(key.environment.clone());
        let (python, folder) = (&key.python, &key.pack_folder);
        let zygote = Zygote::start(python, &self.sources, folder, &environment, self.options.idle_time)
            .map_err(|error| start_error(action, &error.to_string()))?;
        let lease = zygote.lease().ok_or_else(|| start_error(action, "it ended at once"))?;
        zygotes.insert(key, zygote);
        Ok((lease, true))
    }

    /// Ends those that have waited longest, so that with a new one no more wait than may.
    fn make_room(&self, zygotes: &mut HashMap<Key, Arc<Zygote>>) {
        let mut idle: Vec<_> =
            zygotes.values().filter_map(|zygote| Some((zygote.idle_since()?, zygote))).collect();
        idle.sort_by_key(|(since, _)| *since);
        let surplus = (idle.len() + 1).saturating_sub(self.options.idle_max);
        idle.iter().take(surplus).for_each(|(_, zygote)| zygote.close());
        zygotes.retain(|_, zygote| !zygote.is_over());
    }

    fn zygotes(&self) -> MutexGuard<'_, HashMap<Key, Arc<Zygote>>> {
        self.zygotes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PythonHosts {
    fn drop(&mut self) {
        self.zygotes().values().for_each(|zygote| zygote.close());
    }
}

fn start_error(action: &PythonAction, complaint: &str) -> PythonError {
    let python = action.python.display();
    PythonError::Start(format!(
        "Python `{python}` of pack `{}` does not start: {complaint}; install the pack again to set it up",
        action.pack
    ))
}
