//! An action to run, and the request that its process reads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use imori_automation::value::Map;
use serde::Serialize;

use super::datastore::Datastore;
use super::files::RunFiles;
use super::outcome::PythonError;
use crate::limits::{PYTHON_REQUEST_BYTES_MAX, PYTHON_RESULT_BYTES_MAX};
use crate::outputs::ResultPlace;

/// A Python action to run.
pub struct PythonAction {
    /// The name of its pack.
    pub pack: String,
    /// The Python of the pack's virtual environment.
    pub python: PathBuf,
    /// The folder of the pack.
    pub pack_folder: PathBuf,
    /// The file with the action's class.
    pub entry_point: PathBuf,
    /// What `run` is called with.
    pub parameters: Map,
    /// The configuration of the pack.
    pub config: Map,
    /// Who runs the action.
    pub user: String,
    /// The execution's id.
    pub execution_id: String,
    /// The level of `self.logger`, such as `debug`.
    pub log_level: String,
    /// Environment variables beyond those of the hosts, with `ST2_ACTION_API_URL` and the like. `PYTHONPATH` is
    /// ignored, as it would break imports.
    pub environment: BTreeMap<String, String>,
    /// Time after which the action is ended.
    pub timeout: Duration,
    /// An existing folder for the files of this run: what it writes, its result, and what a broker that starts after
    /// this one died needs to find it again.
    pub folder: PathBuf,
    /// Bytes that are recorded of each of its outputs.
    pub output_bytes_max: u64,
    /// Its place among the results in memory.
    pub place: ResultPlace,
    /// Answers `self.action_service`.
    pub datastore: Arc<dyn Datastore>,
}

impl PythonAction {
    /// The request that the process of the action reads.
    ///
    /// # Errors
    /// It has more than `PYTHON_REQUEST_BYTES_MAX` bytes, or a path is no UTF-8.
    pub(super) fn request(&self) -> Result<Vec<u8>, PythonError> {
        let mut environment: BTreeMap<&str, &str> = BTreeMap::new();
        for (name, value) in &self.environment {
            // The action chooses its variables, except Python's path.
            if !name.eq_ignore_ascii_case("PYTHONPATH") {
                environment.insert(name, value);
            }
        }
        environment.insert("ST2_ACTION_PACK_NAME", &self.pack);
        environment.insert("ST2_ACTION_EXECUTION_ID", &self.execution_id);
        let files = RunFiles(&self.folder);
        let (result_file, started_file) = (files.result_path(), files.started_path());
        let request = Request {
            pack: &self.pack,
            entry_point: path(&self.entry_point)?,
            parameters: &self.parameters,
            config: &self.config,
            user: &self.user,
            execution_id: &self.execution_id,
            log_level: &self.log_level,
            environment,
            working_folder: "/",
            result_file: path(&result_file)?,
            started_file: path(&started_file)?,
            result_limit: PYTHON_RESULT_BYTES_MAX,
        };
        let json = serde_json::to_vec(&request).map_err(|error| PythonError::System(error.to_string()))?;
        if json.len() > PYTHON_REQUEST_BYTES_MAX {
            return Err(PythonError::TooLarge(format!(
                "parameters, configuration and environment have {} bytes; at most {PYTHON_REQUEST_BYTES_MAX} are allowed",
                json.len()
            )));
        }
        Ok(json)
    }

    /// The variables that only a Python that starts takes notice of.
    pub(super) fn start_environment(&self) -> BTreeMap<String, String> {
        let is_for_start = |name: &str| {
            (name.starts_with("PYTHON") && name != "PYTHONPATH")
                || name.starts_with("LC_")
                || name.starts_with("LD_")
                || name == "LANG"
        };
        let chosen = self.environment.iter().filter(|(name, _)| is_for_start(name));
        chosen.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

#[derive(Serialize)]
struct Request<'a> {
    pack: &'a str,
    entry_point: &'a str,
    parameters: &'a Map,
    config: &'a Map,
    user: &'a str,
    execution_id: &'a str,
    log_level: &'a str,
    environment: BTreeMap<&'a str, &'a str>,
    working_folder: &'a str,
    result_file: &'a str,
    started_file: &'a str,
    result_limit: usize,
}

fn path(path: &Path) -> Result<&str, PythonError> {
    path.to_str()
        .ok_or_else(|| PythonError::System(format!("path `{}` is no UTF-8; rename it", path.display())))
}
