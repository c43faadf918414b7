//! What sensors do at the moment, as the API shows it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use ring::digest::{SHA256, digest};

use crate::limits::{SENSOR_LINE_BYTES_MAX, SENSOR_LINES_KEPT};

/// The states of all sensors that are meant to run, by reference.
#[derive(Debug, Default)]
pub(crate) struct SensorStates(Mutex<BTreeMap<String, SensorState>>);

/// What a sensor does.
#[derive(Debug, Default, Clone)]
pub(crate) struct SensorState {
    /// What it does now.
    pub(crate) status: SensorStatus,
    /// The number of its process.
    pub(crate) pid: Option<u32>,
    /// The token that it uses the API with while it runs.
    pub(crate) token: Option<String>,
    /// Since when `status` holds.
    pub(crate) since: Option<Timestamp>,
    /// How often it ended without being told to since it was enabled or its pack was registered.
    pub(crate) restarts: u32,
    /// How it ended last.
    pub(crate) last_end: Option<String>,
    /// When it is started again.
    pub(crate) next_start: Option<Timestamp>,
    /// Events that it has dispatched.
    pub(crate) events: u64,
    /// The last lines that it has written.
    pub(crate) lines: VecDeque<String>,
}

/// What a sensor does now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SensorStatus {
    /// It is disabled, or no rule waits for it.
    #[default]
    Stopped,
    /// Its environment is built, or it is being set up.
    Starting,
    /// It runs.
    Running,
    /// It has ended and is started again after a pause.
    Waiting,
    /// As `Waiting`, after it ended several times in a row.
    CrashLooping,
}

impl SensorStatus {
    /// The name that the API shows.
    pub(crate) fn name(self) -> &'static str {
        match self {
            SensorStatus::Stopped => "stopped",
            SensorStatus::Starting => "starting",
            SensorStatus::Running => "running",
            SensorStatus::Waiting => "waiting",
            SensorStatus::CrashLooping => "crash-looping",
        }
    }
}

impl SensorStates {
    /// Changes the state of a sensor.
    pub(crate) fn change(&self, reference: &str, change: impl FnOnce(&mut SensorState)) {
        change(self.lock().entry(reference.to_owned()).or_default());
    }

    /// The state of a sensor.
    pub(crate) fn of(&self, reference: &str) -> SensorState {
        self.lock().get(reference).cloned().unwrap_or_default()
    }

    /// Whether this is the token of a sensor that runs. Hashes are compared, so that the time tells nothing of a token.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        let hashed = |token: &str| digest(&SHA256, token.as_bytes());
        let given = hashed(token);
        let is_given = |own: &String| hashed(own).as_ref() == given.as_ref();
        self.lock().values().any(|state| state.token.as_ref().is_some_and(is_given))
    }

    /// Forgets a sensor that is no longer meant to run.
    pub(crate) fn remove(&self, reference: &str) {
        self.lock().remove(reference);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SensorState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SensorState {
    /// Notes a line of output.
    pub(crate) fn add_line(&mut self, line: &str) {
        if self.lines.len() == SENSOR_LINES_KEPT {
            self.lines.pop_front();
        }
        let end = line.floor_char_boundary(SENSOR_LINE_BYTES_MAX.min(line.len()));
        self.lines.push_back(line.get(..end).unwrap_or_default().to_owned());
    }

    /// Begins a new status.
    pub(crate) fn enter(&mut self, status: SensorStatus, now: Timestamp) {
        self.status = status;
        self.since = Some(now);
        self.next_start = None;
    }

    /// The state as the API shows it.
    pub(crate) fn document(&self) -> Map {
        let time = |time: Option<Timestamp>| Value::from(time.map(|time| time.to_string()));
        let lines: Vec<Value> = self.lines.iter().map(|line| Value::from(line.as_str())).collect();
        let mut document = Map::new();
        document.insert("status", self.status.name());
        document.insert("since", time(self.since));
        document.insert("pid", self.pid.map_or(Value::Null, |pid| Value::from(i64::from(pid))));
        document.insert("events", i64::try_from(self.events).unwrap_or(i64::MAX));
        document.insert("restarts", i64::from(self.restarts));
        document.insert("last_end", self.last_end.clone());
        document.insert("next_start", time(self.next_start));
        document.insert("output", lines);
        document
    }
}
