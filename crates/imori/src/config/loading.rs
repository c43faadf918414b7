//! Takes over values one by one and keeps what is wrong with them.

use std::collections::HashMap;
use std::fmt::Display;

use imori_server::config::{Config, SetError, Value};

use super::problem::{Location, Problem, Problems};

/// A configuration, and where each of its keys was set.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// The values.
    pub(crate) config: Config,
    places: HashMap<String, Location>,
}

impl Loaded {
    /// Checks what no single value shows.
    ///
    /// # Errors
    /// The first contradiction, with the place of one of its keys.
    pub(crate) fn check(&self) -> Result<(), Problems> {
        self.config.check().map_err(|conflict| self.located(&conflict.keys(), &conflict))
    }

    /// Tells what is wrong with one of these keys, with the place of the first that was set.
    pub(crate) fn located(&self, keys: &[String], what: &dyn Display) -> Problems {
        let place = keys.iter().find_map(|key| self.places.get(key));
        Problems(vec![Problem::of_keys(place, what)])
    }

    /// Forgets where the keys of a section were set, as the command line has set them all.
    pub(crate) fn forget_places(&mut self, section: &str) {
        self.places.retain(|key, _| key.split_once('.').is_none_or(|(of, _)| of != section));
    }
}

/// A configuration in the making.
#[derive(Default)]
pub(super) struct Loading {
    config: Config,
    places: HashMap<String, Location>,
    problems: Vec<Problem>,
}

impl Loading {
    /// Sets a key to the first of these readings of what the source says that it takes.
    pub(super) fn set(
        &mut self,
        location: &Location,
        section: &str,
        key: &str,
        readings: &[Value],
        shown: &str,
    ) {
        let mut outcome = Ok(());
        for reading in readings {
            outcome = self.config.set(section, key, reading);
            if outcome.is_ok() {
                self.places.insert(format!("{section}.{key}"), location.clone());
                return;
            }
        }
        match outcome {
            Ok(()) => {}
            Err(SetError::UnknownKey) => self.problems.push(Problem::unknown_key(location, section, key)),
            Err(SetError::Refused { expected }) => {
                self.problems.push(Problem::refused(location, section, key, shown, &expected));
            }
        }
    }

    /// Notes a problem that is not about a value.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Whether a section has this name.
    pub(super) fn has_section(&self, name: &str) -> bool {
        self.config.sections().iter().any(|section| section.name == name)
    }

    /// The configuration, if nothing is wrong with it.
    pub(super) fn outcome(self) -> Result<Loaded, Problems> {
        match self.problems.is_empty() {
            true => Ok(Loaded { config: self.config, places: self.places }),
            false => Err(Problems(self.problems)),
        }
    }
}
