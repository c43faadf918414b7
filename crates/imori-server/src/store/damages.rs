//! Findings of damaged or missing files, kept until an operator acknowledges them.
//!
//! The monitor shows them. A note in the data folder carries them over restarts; removing the note acknowledges them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use imori_store::folder::damage_note;
use tracing::warn;

use crate::limits::DAMAGES_MAX;
use crate::slots::unpoisoned;

/// Damage found by this process and by those before it.
#[derive(Debug)]
pub(crate) struct Damages {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    findings: Vec<String>,
    /// Whether the note on disk has the findings, so that its absence means that they were acknowledged.
    are_noted: bool,
}

impl Damages {
    /// Reads the findings noted in this data folder.
    pub(crate) fn of(folder: &Path) -> Damages {
        let findings = damage_note::read(folder).inspect_err(|error| {
            warn!(%error, file = damage_note::NAME, "the note of earlier damage cannot be read");
        });
        let mut findings = findings.unwrap_or_default();
        findings.truncate(DAMAGES_MAX);
        Damages { folder: folder.to_owned(), state: Mutex::new(State { findings, are_noted: true }) }
    }

    /// Adds findings that are not known yet and writes the note. The caller has logged them.
    pub(crate) fn note(&self, findings: impl IntoIterator<Item = String>) {
        let mut state = unpoisoned(self.state.lock());
        state.forget_acknowledged(&self.folder);
        let before = state.findings.len();
        for finding in findings {
            let finding = finding.replace('\n', "; ");
            if state.findings.len() < DAMAGES_MAX && !state.findings.contains(&finding) {
                state.findings.push(finding);
            }
        }
        if state.findings.len() > before {
            let noted = damage_note::add(&self.folder, &state.findings);
            let noted = noted.inspect_err(|error| {
                warn!(%error, file = damage_note::NAME, "damage cannot be noted for the next start");
            });
            state.are_noted = noted.is_ok();
        }
    }

    /// Returns the findings that are not acknowledged.
    pub(crate) fn findings(&self) -> Vec<String> {
        let mut state = unpoisoned(self.state.lock());
        state.forget_acknowledged(&self.folder);
        state.findings.clone()
    }
}

impl State {
    fn forget_acknowledged(&mut self, folder: &Path) {
        // A store without damage asks the disk for nothing.
        if !self.findings.is_empty() && self.are_noted && !damage_note::is_there(folder) {
            self.findings.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_until_its_note_is_gone() {
        let data = tempfile::tempdir().expect("there is a folder for temporary files");
        let damages = Damages::of(data.path());
        assert!(damages.findings().is_empty() && !damage_note::is_there(data.path()));
        damages.note(["one".to_string(), "two\nlines".to_string()]);
        damages.note(["one".to_string()]);
        assert_eq!(damages.findings(), ["one", "two; lines"]);
        let again = Damages::of(data.path());
        assert_eq!(again.findings(), ["one", "two; lines"], "a restart forgets nothing");
        damage_note::acknowledge(data.path()).expect("it is there");
        assert!(damages.findings().is_empty() && again.findings().is_empty());
        damages.note(["three".to_string()]);
        assert_eq!(damages.findings(), ["three"]);
        assert_eq!(damage_note::read(data.path()).expect("it is there"), ["three"]);
    }

    #[test]
    fn what_cannot_be_noted_is_told_as_long_as_the_process_lives() {
        let damages = Damages::of(Path::new("/nowhere/at/all"));
        damages.note(["one".to_string()]);
        assert_eq!(damages.findings(), ["one"]);
    }

    #[test]
    fn findings_have_an_end() {
        let data = tempfile::tempdir().expect("there is a folder for temporary files");
        let damages = Damages::of(data.path());
        damages.note((0..2 * DAMAGES_MAX).map(|number| number.to_string()));
        assert_eq!(damages.findings().len(), DAMAGES_MAX);
    }
}
