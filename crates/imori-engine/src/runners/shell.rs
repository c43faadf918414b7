//! Commands and scripts of this machine. A recorder writes their output to files, and a shell around them the exit code,
//! so that they survive the broker and its successor finds their outcome.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use imori_automation::parameters::positional_arguments;
use imori_automation::value::{Map, Value};
use tokio::process::Command;

use super::outcome::Outcome;
use crate::executions::{Run, Status};
use crate::limits::SHELL_TIMEOUT;
use crate::outputs::{Outputs, Recorded};
use crate::process::{Ended, IDENTITY_FILE, Process};

/// Runs the rest of its arguments, and notes their exit code in the folder that is its first argument.
pub(super) const WRAPPER: &str = r#"folder=$1; shift; "$@"; code=$?
echo $code >"$folder/exit.new" && mv "$folder/exit.new" "$folder/exit"; exit $code"#;

/// Environment variables of a command.
type Variables = [(&'static str, String)];

/// Waits for the line that the broker sends once it has noted the process, and marks the start. A broker that dies before
/// closes the pipe, and the command never begins.
const GATE: &str = r#"read -r go || exit 1; : >"$1/started" || exit 1; exec </dev/null
"#;

/// Runs the command in the parameter `cmd`.
pub(crate) async fn run_command(run: &Run, variables: &Variables) -> Outcome {
    let Some(command) = run.runner_parameters.get("cmd").and_then(Value::as_str) else {
        return Outcome::failed("parameter `cmd` is missing");
    };
    let arguments = [OsString::from(shell()), OsString::from("-c"), OsString::from(command)];
    run_arguments(run, &arguments, variables).await
}

/// Runs the action's script with its parameters as arguments.
pub(crate) async fn run_script(run: &Run, variables: &Variables) -> Outcome {
    let script = match script(run) {
        Ok(script) => script,
        Err(error) => return Outcome::failed(error),
    };
    let empty = Map::new();
    let schema = run.action.get("parameters").and_then(Value::as_map).unwrap_or(&empty);
    let (positional, named) = positional_arguments(schema, &run.parameters);
    let operator = run.runner_parameters.get("kwarg_op").and_then(Value::as_str).unwrap_or("--");
    let mut arguments = vec![script.into_os_string()];
    for (name, value) in named.iter() {
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::Bool(true) => arguments.push(format!("{operator}{name}").into()),
            Value::String(text) => arguments.push(format!("{operator}{name}={text}").into()),
            other => arguments.push(format!("{operator}{name}={other}").into()),
        }
    }
    arguments.extend(positional.into_iter().map(OsString::from));
    run_arguments(run, &arguments, variables).await
}

/// The action's script, made executable.
pub(super) fn script(run: &Run) -> Result<PathBuf, String> {
    let entry = run.action_text("entry_point");
    let folder = run.pack_folder.as_deref().ok_or("the action's pack has no folder")?.join("actions");
    let script = folder.join(entry).canonicalize().map_err(|error| format!("script `{entry}`: {error}"))?;
    let root = folder.canonicalize().map_err(|error| error.to_string())?;
    if !script.starts_with(&root) {
        return Err(format!("script `{entry}` is outside of its pack"));
    }
    let mode =
        fs::metadata(&script).map_err(|error| format!("script `{entry}`: {error}"))?.permissions().mode();
    if mode & 0o100 == 0 {
        let changed = fs::set_permissions(&script, fs::Permissions::from_mode(mode | 0o100));
        changed.map_err(|error| format!("script `{entry}` is not executable: {error}"))?;
    }
    Ok(script)
}

fn shell() -> &'static str {
    match Path::new("/bin/bash").exists() {
        true => "/bin/bash",
        false => "/bin/sh",
    }
}

async fn run_arguments(run: &Run, arguments: &[OsString], variables: &Variables) -> Outcome {
    let timeout = run.timeout(SHELL_TIMEOUT);
    let (process, mut outputs) = match start(run, arguments, variables) {
        Ok(started) => started,
        Err(error) => return Outcome::failed(format!("the command cannot be started: {error}")),
    };
    let ended = process.wait(timeout, run.canceled.clone(), || outputs.are_over()).await;
    outputs.settle().await;
    outputs.wait_for_place(&run.place).await;
    outcome(&run.folder, &outputs.recorded(u64::MAX), ended, timeout)
}

/// The outcome of a command that an earlier engine started and that has ended by now.
pub(super) fn outcome_of_files(
    folder: &Path,
    recorded: &Recorded,
    ended: Ended,
    timeout: Duration,
) -> Outcome {
    let is_lost = matches!(ended, Ended::Exited) && exit_code(folder).is_none();
    let lost = || Ended::Lost(String::from("the action's process is gone, and left no exit code"));
    outcome(folder, recorded, if is_lost { lost() } else { ended }, timeout)
}

fn start(run: &Run, arguments: &[OsString], variables: &Variables) -> io::Result<(Process, Outputs)> {
    fs::create_dir_all(&run.folder)?;
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(format!("{GATE}{WRAPPER}")).arg("imori").arg(&run.folder);
    if run.runner_parameters.get("sudo").is_some_and(Value::is_truthy) {
        command.args(["sudo", "-E", "-H", "-n", "--"]);
    }
    command.args(arguments).stdin(Stdio::piped()).process_group(0);
    let (outputs, [stdout, stderr]) = Outputs::record(&run.folder, run.output_bytes_max)?;
    command.stdout(stdout).stderr(stderr);
    if let Some(folder) =
        run.runner_parameters.get("cwd").and_then(Value::as_str).filter(|cwd| !cwd.is_empty())
    {
        command.current_dir(folder);
    }
    let environment = run.runner_parameters.get("env").and_then(Value::as_map);
    for (name, value) in environment.into_iter().flat_map(Map::iter) {
        command.env(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Ok((Process::start(command, &run.folder.join(IDENTITY_FILE))?, outputs))
}

/// The outcome of a command that left its exit code in this folder. One whose output is not whole has failed.
pub(crate) fn outcome(folder: &Path, recorded: &Recorded, ended: Ended, timeout: Duration) -> Outcome {
    let code = match ended {
        Ended::Exited => exit_code(folder),
        _ => None,
    };
    let cut = recorded.cut();
    let (code, status, error) = match (ended, code) {
        (Ended::Exited, Some(code)) if code != 0 || cut.is_some() => (code, Status::Failed, None),
        (Ended::Exited, Some(code)) => (code, Status::Succeeded, None),
        (Ended::Exited, None) => (-9, Status::Failed, Some(String::from("the command was killed"))),
        (Ended::TimedOut, _) => {
            let seconds = timeout.as_secs_f64();
            (-9, Status::TimedOut, Some(format!("Action failed to complete in {seconds} seconds")))
        }
        (Ended::Canceled, _) => (-15, Status::Canceled, Some(String::from("the execution was canceled"))),
        (Ended::Flooded, _) => (-9, Status::Failed, None),
        (Ended::Lost(error), _) => (-1, Status::Abandoned, Some(error)),
    };
    let mut result = Map::new();
    result.insert("failed", status != Status::Succeeded);
    result.insert("succeeded", status == Status::Succeeded);
    result.insert("return_code", i64::from(code));
    recorded.note_cut(&mut result);
    result.insert("stdout", output(&recorded.stdout.text));
    result.insert("stderr", output(&recorded.stderr.text));
    if let Some(error) = error.or(cut) {
        result.insert("error", error);
    }
    Outcome { status, result: Value::Map(result) }
}

fn exit_code(folder: &Path) -> Option<i32> {
    fs::read_to_string(folder.join("exit")).ok()?.trim().parse().ok()
}

/// What a command printed; JSON becomes its value, as in StackStorm.
fn output(text: &str) -> Value {
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    match Value::from_json(text.as_bytes()) {
        Ok(value) if !text.is_empty() => value,
        _ => Value::from(text),
    }
}
