//! Runners: how an action is run.

pub(crate) mod ssh;
mod shell;
mod http;
mod python;
mod own;
mod messages;
mod outcome;

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::executions::{Run, Status};
use crate::limits::{PYTHON_TIMEOUT, SHELL_TIMEOUT};
use crate::outputs::Outputs;
use crate::process::{Ended, IDENTITY_FILE, Process, STARTED_FILE};

pub(crate) use outcome::Outcome;

/// Whether a runner needs no time, so that its execution is stored once and not twice.
pub(crate) fn is_instant(runner: &str) -> bool {
    matches!(runner, "noop" | "announcement")
}

/// Runs an action.
pub(crate) async fn run(engine: &Arc<Engine>, run: &Run) -> Outcome {
    match run.action_text("runner_type") {
        "noop" => Outcome { status: Status::Succeeded, result: Value::Map(Map::new()) },
        "announcement" => {
            let mut result = Map::new();
            result.insert(
                "experimental",
                run.runner_parameters.get("experimental").cloned().unwrap_or_default(),
            );
            result.insert("route", run.runner_parameters.get("route").cloned().unwrap_or_default());
            result.insert("payload", run.parameters.clone());
            engine.tell("general", &result);
            Outcome { status: Status::Succeeded, result: Value::Map(run.parameters.clone()) }
        }
        "local-shell-cmd" => shell::run_command(run, &engine.action_variables(run)).await,
        "local-shell-script" => shell::run_script(run, &engine.action_variables(run)).await,
        "remote-shell-cmd" => ssh::run_command(run, &engine.options.folder).await,
        "remote-shell-script" => ssh::run_script(run, &engine.options.folder).await,
        "http-request" => http::run_request(run).await,
        "python-script" => engine.run_python(run).await,
        "imori-engine" => engine.run_own(run).await,
        "imori-publish" => engine.run_publish(run).await,
        "imori-call" => engine.run_call(run).await,
        other => Outcome::failed(format!("runner `{other}` is not available here")),
    }
}

/// The outcome of an action that an earlier engine started: waits for its process, or reads what it left. `None` if the
/// action may run now: it has not begun and cannot begin any more, or its second run does nothing twice.
/// `is_same_boot` tells whether the machine has run since the action was started.
pub(crate) async fn find_again(run: &Run, is_same_boot: bool) -> Option<Outcome> {
    let runner = run.action_text("runner_type");
    let limit = match runner {
        "local-shell-cmd" | "local-shell-script" => run.timeout(SHELL_TIMEOUT),
        "python-script" => run.timeout(PYTHON_TIMEOUT),
        "imori-engine" if own::is_repeatable(run) => return None,
        other => {
            let reason = format!("the broker ended while an action of runner `{other}` ran");
            return Some(Outcome { status: Status::Abandoned, ..Outcome::failed(reason) });
        }
    };
    let process = if is_same_boot { Process::find(&run.folder.join(IDENTITY_FILE)) } else { None };
    let mut outputs = Outputs::find(&run.folder, run.output_bytes_max);
    let ended = match process {
        Some(process) => process.wait(limit, run.canceled.clone(), || outputs.are_over()).await,
        None => Ended::Exited,
    };
    // A process that ended before it made this file has done nothing. After a start of the machine the file may be lost.
    if is_same_boot && matches!(ended, Ended::Exited) && !run.folder.join(STARTED_FILE).exists() {
        return None;
    }
    outputs.settle().await;
    outputs.wait_for_place(&run.place).await;
    let recorded = outputs.recorded(u64::MAX);
    Some(match runner {
        "python-script" => python::outcome_of_files(run, recorded, ended, limit),
        _ => shell::outcome_of_files(&run.folder, &recorded, ended, limit),
    })
}
