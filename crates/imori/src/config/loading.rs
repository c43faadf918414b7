//! Collects the values of a configuration, with their locations and problems.

use std::collections::HashMap;
use std::fmt::Display;

use imori_server::config::{Config, SetError, Value};

use super::problem::{Location, Problem, Problems};

/// A configuration and the location of each key that was set.
#[derive(Debug)]
pub struct Loaded {
    /// The values in force.
    pub config: Config,
    places: HashMap<String, Location>,
}

impl Loaded {
    /// Checks the values against each other.
    ///
    /// # Errors
    /// The first conflict, with the location of one of its keys.
    pub(crate) fn check(&self) -> Result<(), Problems> {
        self.config.check().map_err(|conflict| self.located(&conflict.keys(), &conflict))
    }

    /// Combines a problem of these keys with the location of the first key that was set.
    pub(crate) fn located(&self, keys: &[String], what: &dyn Display) -> Problems {
        let place = keys.iter().find_map(|key| self.places.get(key));
        Problems(vec![Problem::of_keys(place, what)])
    }

    /// Forgets the locations of a section's keys, because the command line replaced the whole
    /// section.
    pub(crate) fn forget_places(&mut self, section: &str) {
        self.places.retain(|key, _| key.split_once('.').is_none_or(|(of, _)| of != section));
    }
}

/// A configuration being loaded.
#[derive(Default)]
pub(super) struct Loading {
    config: Config,
    places: HashMap<String, Location>,
    problems: Vec<Problem>,
}

impl Loading {
    /// Sets a key to the first of these readings that it accepts.
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

    /// Adds a problem that does not concern a value.
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Whether a section with this name exists.
    pub(super) fn has_section(&self, name: &str) -> bool {
        self.config.sections().iter().any(|section| section.name == name)
    }

    /// The configuration, or all problems found.
    pub(super) fn outcome(self) -> Result<Loaded, Problems> {
        match self.problems.is_empty() {
            true => {
                let mut config = self.config;
                config.set_by =
                    self.places.iter().map(|(key, place)| (key.clone(), place.to_string())).collect();
                Ok(Loaded { config, places: self.places })
            }
            false => Err(Problems(self.problems)),
        }
    }
}
