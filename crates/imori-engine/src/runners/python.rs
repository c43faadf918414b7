//! Python actions: run by the Python of their pack, with the datastore at hand.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use imori_automation::value::{Map, Value};

use super::outcome::Outcome;
use crate::datastore::Keys;
use crate::engine::Engine;
use crate::executions::{Run, Status};
use crate::limits::PYTHON_TIMEOUT;
use crate::outputs::Recorded;
use crate::process::Ended;
use crate::python::{PythonAction, PythonOutcome, PythonStatus, RunFiles};

impl Engine {
    /// Runs the class in the action's file. A pack without an environment gets one first.
    pub(crate) async fn run_python(self: &Arc<Self>, run: &Run) -> Outcome {
        let action = match self.python_action(run).await {
            Ok(action) => action,
            Err(reason) => return Outcome::failed(reason),
        };
        let hosts = match self.python_hosts() {
            Ok(hosts) => hosts,
            Err(error) => {
                return Outcome::failed(format!("the files of the Python host cannot be written: {error}"));
            }
        };
        let mut canceled = run.canceled.clone();
        let ended = tokio::select! {
            ended = hosts.run(&action) => ended,
            // Dropping the run ends its process.
            Ok(_) = canceled.wait_for(|is_canceled| *is_canceled) => {
                return Outcome { status: Status::Canceled, ..Outcome::failed("the execution was canceled") };
            }
        };
        match ended {
            Ok(ended) => outcome(&ended),
            Err(error) => Outcome::failed(error.to_string()),
        }
    }

    async fn python_action(self: &Arc<Self>, run: &Run) -> Result<PythonAction, String> {
        let pack = run.action_text("pack");
        let pack_folder = run.pack_folder.clone().ok_or_else(|| format!("pack `{pack}` has no folder"))?;
        let entry_point = entry_point(&pack_folder, run.action_text("entry_point"))?;
        let registry = self.registry();
        let versions = registry.packs.get(pack).map(|pack| pack.pack.manifest.python_versions.clone());
        let environments = self.environments();
        let environment = environments.build(pack, &pack_folder, &versions.unwrap_or_default()).await;
        let environment = environment.map_err(|error| error.to_string())?;
        std::fs::create_dir_all(&run.folder).map_err(|error| error.to_string())?;
        let variables =
            run.runner_parameters.get("env").and_then(Value::as_map).into_iter().flat_map(Map::iter);
        let mut variables: BTreeMap<String, String> = variables
            .map(|(name, value)| {
                (name.to_owned(), value.as_str().map_or_else(|| value.to_json(), str::to_owned))
            })
            .collect();
        for (name, value) in self.action_variables(run) {
            // StackStorm's client reads these names.
            let of_client = match name {
                "ST2_ACTION_API_URL" => Some("ST2_API_URL"),
                "ST2_ACTION_AUTH_TOKEN" => Some("ST2_AUTH_TOKEN"),
                _ => None,
            };
            if let Some(of_client) = of_client {
                variables.insert(of_client.to_owned(), value.clone());
            }
            variables.insert(name.to_owned(), value);
        }
        let level = run.runner_parameters.get("log_level").and_then(Value::as_str).unwrap_or("DEBUG");
        Ok(PythonAction {
            pack: pack.to_owned(),
            python: environment.python,
            pack_folder,
            entry_point,
            parameters: run.parameters.clone(),
            config: run.config.clone(),
            user: run.user().to_owned(),
            execution_id: run.id.clone(),
            log_level: level.to_lowercase(),
            environment: variables,
            timeout: run.timeout(PYTHON_TIMEOUT),
            folder: run.folder.clone(),
            output_bytes_max: run.output_bytes_max,
            place: run.place.clone(),
            datastore: Arc::new(Keys::new(self, run.user())),
        })
    }
}

/// The outcome of an action that an earlier engine started and that has ended by now.
pub(super) fn outcome_of_files(run: &Run, recorded: Recorded, ended: Ended, limit: Duration) -> Outcome {
    let said = RunFiles(&run.folder).result(&run.id);
    match ended {
        Ended::Canceled => {
            return Outcome { status: Status::Canceled, ..Outcome::failed("the execution was canceled") };
        }
        Ended::Lost(reason) => return Outcome { status: Status::Abandoned, ..Outcome::failed(reason) },
        Ended::Exited if said.is_none() && recorded.stop.is_none() => {
            let mut abandoned = Outcome::failed("the action's process is gone, and left no result");
            if let Value::Map(result) = &mut abandoned.result {
                recorded.note_cut(result);
                result.insert("stdout", recorded.stdout.text);
                result.insert("stderr", recorded.stderr.text);
            }
            return Outcome { status: Status::Abandoned, ..abandoned };
        }
        Ended::Exited | Ended::TimedOut | Ended::Flooded => {}
    }
    outcome(&PythonOutcome {
        exit_code: said.as_ref().map(|said| said.exit_code),
        status: said.as_ref().and_then(|said| said.status),
        result: said.and_then(|said| said.result),
        recorded,
        is_timed_out: matches!(ended, Ended::TimedOut),
        timeout_s: limit.as_secs_f64(),
    })
}

fn outcome(ended: &PythonOutcome) -> Outcome {
    let status = match ended.status() {
        PythonStatus::Succeeded => Status::Succeeded,
        PythonStatus::Failed => Status::Failed,
        PythonStatus::TimedOut => Status::TimedOut,
    };
    Outcome { status, result: Value::Map(ended.output()) }
}

fn entry_point(pack_folder: &std::path::Path, entry: &str) -> Result<PathBuf, String> {
    let folder = pack_folder.join("actions").canonicalize().map_err(|error| error.to_string())?;
    let path = folder.join(entry).canonicalize().map_err(|error| format!("`actions/{entry}`: {error}"))?;
    match path.starts_with(&folder) {
        true => Ok(path),
        false => Err(format!("`actions/{entry}` is outside of its pack")),
    }
}
