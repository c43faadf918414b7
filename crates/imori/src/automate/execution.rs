//! `imori automate run` and `exec`.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::api::AutomationOptions;
use crate::admin_client::segment;
use crate::arguments::{argument, object};
use crate::output::print;

/// Run an action, wait for its end and print its result.
///
/// Exit codes: 0 it succeeded, 1 it did not, or could not be run.
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    asked: AutomationOptions,
    /// Only request the execution, and print its id.
    #[arg(long = "async")]
    is_async: bool,
    /// The action, such as `core.local`.
    #[arg(value_name = "REF")]
    action: String,
    /// Parameters, such as `cmd=date` or `hosts=["a","b"]`.
    #[arg(value_name = "KEY=VALUE", value_parser = argument)]
    parameters: Vec<(String, Value)>,
}

impl Run {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let body = json!({"action": self.action, "parameters": object(self.parameters)?});
        let what = format!("action `{}`", self.action);
        let requested = self.asked.admin()?.post("/api/v1/executions", &what, &body)?;
        let id = requested["id"].as_str().unwrap_or_default();
        match self.is_async {
            true => self.asked.tell(&requested, id),
            false => self.asked.finish(id),
        }
    }
}

/// Show, cancel and repeat executions.
#[derive(Debug, Args)]
pub(super) struct Exec {
    #[command(subcommand)]
    command: ExecCommand,
}

#[derive(Debug, Subcommand)]
enum ExecCommand {
    /// List executions, the newest first.
    List {
        #[command(flatten)]
        asked: AutomationOptions,
        /// Only those of this action.
        #[arg(long, value_name = "REF")]
        action: Option<String>,
        /// Only those in this status, such as `running`.
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// Only those of this rule.
        #[arg(long, value_name = "REF")]
        rule: Option<String>,
        /// At most this many.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100))]
        limit: u32,
    },
    /// Show an execution; `last` is the newest.
    Get(Named),
    /// Cancel an execution that waits or runs.
    Cancel(Named),
    /// Run an action again with the parameters of an execution, or tasks of its workflow; wait for the end.
    ///
    /// Exit codes: 0 it succeeded, 1 it did not, or could not be run.
    #[command(name = "re-run")]
    Rerun(Rerun),
    /// Print what an action has written to its outputs so far.
    Output(Named),
}

#[derive(Debug, Args)]
struct Rerun {
    #[command(flatten)]
    named: Named,
    /// Only these tasks of a workflow of Orquesta, and what follows them; the workflow goes on from its last state.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    tasks: Vec<String>,
    /// Of these tasks with items only the items that failed.
    #[arg(long, value_name = "NAME", num_args = 1.., requires = "tasks")]
    no_reset: Vec<String>,
    /// Only request the execution, and print its id.
    #[arg(long = "async")]
    is_async: bool,
}

impl Rerun {
    fn run(self) -> anyhow::Result<()> {
        let reset: Vec<&String> = self.tasks.iter().filter(|task| !self.no_reset.contains(task)).collect();
        let body = json!({"tasks": self.tasks, "reset": reset});
        let (path, what) = (format!("{}/re_run", self.named.path()), self.named.what());
        let requested = self.named.asked.admin()?.post(&path, &what, &body)?;
        let id = requested["id"].as_str().unwrap_or_default();
        match self.is_async {
            true => self.named.asked.tell(&requested, id),
            false => self.named.asked.finish(id),
        }
    }
}

/// One execution.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AutomationOptions,
    /// The id of the execution.
    id: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/api/v1/executions/{}", segment(&self.id))
    }

    fn what(&self) -> String {
        format!("execution `{}`", self.id)
    }
}

impl Exec {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            ExecCommand::List { asked, action, status, rule, limit } => {
                let filters = [("action", action), ("status", status), ("rule", rule)];
                let filters: String = filters
                    .into_iter()
                    .filter_map(|(key, value)| Some(format!("&{key}={}", segment(&value?))))
                    .collect();
                let path = format!("executions?limit={limit}&exclude_attributes=result{filters}");
                let mut rows = asked.admin()?.get(&format!("/api/v1/{path}"), "list")?;
                if asked.is_json() {
                    return asked.print(&rows);
                }
                for row in rows.as_array_mut().into_iter().flatten() {
                    row["action"] = row["action"]["ref"].take();
                }
                let columns = [
                    ("ID", "id"),
                    ("ACTION", "action"),
                    ("STATUS", "status"),
                    ("START", "start_timestamp"),
                    ("SECONDS", "elapsed_seconds"),
                ];
                crate::admin_client::print_table(&rows, &columns)
            }
            ExecCommand::Get(named) => {
                let mut found = named.asked.admin()?.get(&named.path(), &named.what())?;
                if !named.asked.is_json() {
                    let names = ["runner", "liveaction", "trigger", "trigger_type", "rule", "web_url"];
                    let fields = found.as_object_mut();
                    fields
                        .into_iter()
                        .for_each(|fields| names.iter().for_each(|name| drop(fields.remove(*name))));
                    found["action"] = found["action"]["ref"].take();
                }
                named.asked.print(&found)
            }
            ExecCommand::Cancel(named) => {
                named.asked.admin()?.delete(&named.path(), &named.what(), None)?;
                let shown = json!({"id": named.id, "status": "canceling"});
                named.asked.tell(&shown, &format!("{} is canceled", named.what()))
            }
            ExecCommand::Rerun(rerun) => rerun.run(),
            ExecCommand::Output(named) => {
                let text =
                    named.asked.admin()?.get_text(&format!("{}/output", named.path()), &named.what())?;
                print(text.as_bytes())
            }
        }
    }
}
