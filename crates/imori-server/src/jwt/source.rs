//! The source of an issuer's keys, and the thread that refreshes them.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use tracing::{info, warn};

use super::key_set::KeySet;
use crate::config::Jwt;
use crate::fetch::agent;
use crate::limits::{JWT_KEYS_BYTES_MAX, JWT_KEYS_EVERY_MIN, JWT_KEYS_PATIENCE};
use crate::slots::unpoisoned;

/// The issuer's keys cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysError {
    place: String,
    problem: String,
}

impl fmt::Display for KeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the keys for access tokens at `{}`: {}", self.place, self.problem)
    }
}

impl Error for KeysError {}

/// The source of keys.
#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Address { url: String, ca: Option<PathBuf> },
}

/// The issuer's current keys, and requests for newer ones.
#[derive(Debug)]
pub(super) struct KeySource {
    place: Place,
    every: Duration,
    keys: ArcSwap<KeySet>,
    state: Mutex<State>,
    has_changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Number of times that keys were read, successfully or not.
    readings: u64,
    last: Option<Instant>,
    is_wanted: bool,
    is_closed: bool,
    is_failing: bool,
}

impl KeySource {
    /// The source that a configuration names, if any. Keys in a file are read now and must be valid.
    pub(super) fn of(terms: &Jwt) -> Result<Option<KeySource>, KeysError> {
        let place = match (terms.keys_file.path(), &terms.keys_url) {
            (Some(path), _) => Place::File(path.to_owned()),
            (None, Some(url)) => {
                Place::Address { url: url.as_str().to_owned(), ca: terms.keys_ca.path().map(Path::to_owned) }
            }
            (None, None) => return Ok(None),
        };
        let keys = match &place {
            Place::File(_) => place.read()?,
            Place::Address { .. } => KeySet::default(),
        };
        let state = State { readings: 0, last: None, is_wanted: true, is_closed: false, is_failing: false };
        Ok(Some(KeySource {
            place,
            every: terms.keys_refresh_s.duration(),
            keys: ArcSwap::from_pointee(keys),
            state: Mutex::new(state),
            has_changed: Condvar::new(),
        }))
    }

    /// The keys in force.
    pub(super) fn keys(&self) -> Arc<KeySet> {
        self.keys.load_full()
    }

    /// Refreshes the keys until [`KeySource::close`]. If reading fails, the previous keys stay in force.
    pub(super) fn run(&self) {
        while self.wait_for_turn() {
            let read = self.place.read();
            let mut state = unpoisoned(self.state.lock());
            state.readings += 1;
            match read {
                Ok(keys) => {
                    let is_new = **self.keys.load() != keys;
                    if is_new || state.is_failing {
                        info!(place = %self.place.shown(), "the keys for access tokens are read");
                    }
                    state.is_failing = false;
                    self.keys.store(Arc::new(keys));
                }
                // Logged once, until the keys can be read again.
                Err(error) if !state.is_failing => {
                    warn!(%error, "those in force stay");
                    state.is_failing = true;
                }
                Err(_) => {}
            }
            drop(state);
            self.has_changed.notify_all();
        }
    }

    /// Waits until a refresh is due; false once the source is closed.
    fn wait_for_turn(&self) -> bool {
        let mut state = unpoisoned(self.state.lock());
        loop {
            if state.is_closed {
                return false;
            }
            let since = state.last.map_or(Duration::MAX, |last| last.elapsed());
            let pause = if state.is_wanted { JWT_KEYS_EVERY_MIN } else { self.every };
            if since >= pause {
                (state.is_wanted, state.last) = (false, Some(Instant::now()));
                return true;
            }
            let waited = self.has_changed.wait_timeout(state, pause.saturating_sub(since));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Requests a refresh for a token that names an unknown key, and waits for it a moment.
    pub(super) fn renew(&self) {
        let mut state = unpoisoned(self.state.lock());
        let (readings, began) = (state.readings, Instant::now());
        state.is_wanted = true;
        self.has_changed.notify_all();
        while state.readings == readings && !state.is_closed {
            let left = JWT_KEYS_PATIENCE.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            state = self.has_changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends [`KeySource::run`].
    pub(super) fn close(&self) {
        unpoisoned(self.state.lock()).is_closed = true;
        self.has_changed.notify_all();
    }
}

impl Place {
    fn shown(&self) -> String {
        match self {
            Place::File(path) => path.display().to_string(),
            Place::Address { url, .. } => url.clone(),
        }
    }

    fn read(&self) -> Result<KeySet, KeysError> {
        let read = match self {
            Place::File(path) => read_file(path),
            Place::Address { url, ca } => fetch(url, ca.as_deref()),
        };
        let keys = read.and_then(|json| KeySet::read(&json));
        keys.map_err(|problem| KeysError { place: self.shown(), problem })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut json = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(JWT_KEYS_BYTES_MAX + 1).read_to_end(&mut json).map_err(|error| error.to_string())?;
    match json.len() as u64 > JWT_KEYS_BYTES_MAX {
        true => Err(format!("they are longer than {JWT_KEYS_BYTES_MAX} bytes")),
        false => Ok(json),
    }
}

fn fetch(url: &str, ca: Option<&Path>) -> Result<Vec<u8>, String> {
    let mut answer = agent(ca, JWT_KEYS_PATIENCE)?.get(url).call().map_err(|error| error.to_string())?;
    if answer.status().as_u16() != 200 {
        return Err(format!("the answer is {}", answer.status()));
    }
    let body = answer.body_mut().with_config().limit(JWT_KEYS_BYTES_MAX);
    body.read_to_vec().map_err(|error| error.to_string())
}
