//! The files in the folder of a run that an action makes: the mark of its start, and its result. They outlive the engine
//! that started the action, as its process does.

use std::path::{Path, PathBuf};

use super::result::PythonResult;
use crate::process::STARTED_FILE;

/// The files in the folder of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunFiles<'a>(pub(crate) &'a Path);

impl RunFiles<'_> {
    /// The file that gets the result.
    pub(super) fn result_path(self) -> PathBuf {
        self.0.join("result")
    }

    /// The file that the action's process makes before it begins.
    pub(super) fn started_path(self) -> PathBuf {
        self.0.join(STARTED_FILE)
    }

    /// The result, if the action has left one.
    pub(crate) fn result(self, execution_id: &str) -> Option<PythonResult> {
        PythonResult::from_file(&self.result_path(), execution_id)
    }
}
