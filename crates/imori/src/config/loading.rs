//! Takes over values one by one and keeps what is wrong with them.

use imori_server::config::{Config, SetError, Value};

use super::problem::{Location, Problem, Problems};

/// A configuration in the making.
#[derive(Default)]
pub(super) struct Loading {
    config: Config,
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
    pub(super) fn outcome(self) -> Result<Config, Problems> {
        match self.problems.is_empty() {
            true => Ok(self.config),
            false => Err(Problems(self.problems)),
        }
    }
}
