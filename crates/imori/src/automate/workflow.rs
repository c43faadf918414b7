//! `imori automate workflow`: checks of workflows without a broker.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use imori_automation::orquesta;
use imori_automation::rehearsals::{Location, Rehearsal, RehearsalError};
use imori_automation::yaml::{Position, load_with_lines};

use crate::output::print_line;

/// Inspect and rehearse workflows of Orquesta, without a broker.
#[derive(Debug, Args)]
pub(super) struct Workflow {
    #[command(subcommand)]
    command: WorkflowCommand,
}

#[derive(Debug, Subcommand)]
enum WorkflowCommand {
    /// Look for errors in workflows: their syntax, tasks, expressions and variables.
    ///
    /// Prints each error with its file, line and column. Whether the actions of tasks are registered is known to a broker
    /// alone: ask one by `st2 workflow inspect`. Exit codes: 0 there is no error, 1 there is one.
    Inspect {
        /// Files with workflows.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Run rehearsals: lead workflows with given outcomes of their actions, and compare what they do.
    ///
    /// A rehearsal is a test specification of orquesta. Prints each difference with its file, line and column. Exit codes:
    /// 0 all workflows do what is expected, 1 one does not.
    Rehearse {
        /// Files with rehearsals.
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The folder in which the paths of workflows and results within rehearsals begin.
        #[arg(short = 'p', long, value_name = "DIR", default_value = ".")]
        base_path: PathBuf,
    },
}

impl Workflow {
    pub(super) fn run(self) -> anyhow::Result<()> {
        match self.command {
            WorkflowCommand::Inspect { files } => {
                finish(&files, "workflow", "nothing is wrong", |file| Ok(inspected(file, &text_of(file)?)))
            }
            WorkflowCommand::Rehearse { files, base_path } => {
                let sound = "it does what is expected";
                finish(&files, "rehearsal", sound, |file| rehearsed(file, &base_path))
            }
        }
    }
}

/// Checks all files, and prints what is wrong with each.
fn finish(
    files: &[PathBuf],
    kind: &str,
    sound: &str,
    check: impl Fn(&Path) -> anyhow::Result<Vec<String>>,
) -> anyhow::Result<()> {
    let mut wrong = 0;
    for file in files {
        let told = check(file)?;
        wrong += usize::from(!told.is_empty());
        match told.is_empty() {
            true => print_line(&format!("{}: {sound}", file.display()))?,
            false => told.iter().try_for_each(|line| print_line(line))?,
        }
    }
    match wrong {
        0 => Ok(()),
        wrong => bail!("{wrong} of {} {kind}s failed", files.len()),
    }
}

/// The errors of a workflow, one a line.
fn inspected(file: &Path, text: &str) -> Vec<String> {
    let (document, lines) = match load_with_lines(text) {
        Ok(read) => read,
        Err(error) => {
            let position = Position { line: error.line.max(1), column: error.column.max(1) };
            return vec![located(file, position, &format!("no YAML: {}", error.message))];
        }
    };
    let problems = orquesta::Workflow::of(&document, None).err().unwrap_or_default();
    problems
        .iter()
        .map(|problem| {
            located(file, problem.position(&lines), &format!("{}: {}", problem.kind, problem.message))
        })
        .collect()
}

/// What is wrong with a rehearsal or with what its workflow does, one a line.
fn rehearsed(file: &Path, base: &Path) -> anyhow::Result<Vec<String>> {
    let told = |errors: &[RehearsalError], workflow: &Path| -> Vec<String> {
        let line = |error: &RehearsalError| match error.location {
            Location::Rehearsal(position) => located(file, position, &error.message),
            Location::Workflow(position) => located(workflow, position, &error.message),
        };
        errors.iter().map(line).collect()
    };
    let rehearsal = match Rehearsal::read(&text_of(file)?) {
        Ok(rehearsal) => rehearsal,
        Err(errors) => return Ok(told(&errors, file)),
    };
    let unread = |path: &Path, position: Position| {
        let reason = format!(
            "`{}` cannot be read; paths begin at `{}`, see --base-path",
            path.display(),
            base.display()
        );
        vec![located(file, position, &reason)]
    };
    let (workflow, position) = rehearsal.workflow();
    let workflow = base.join(workflow);
    let Ok(text) = fs::read_to_string(&workflow) else { return Ok(unread(&workflow, position)) };
    let mut results = BTreeMap::new();
    for (path, position) in rehearsal.result_files() {
        let place = base.join(path);
        let Ok(text) = fs::read_to_string(&place) else { return Ok(unread(&place, position)) };
        results.insert(path.to_owned(), text);
    }
    Ok(told(&rehearsal.run(&text, &results), &workflow))
}

fn text_of(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("`{}` cannot be read", file.display()))
}

fn located(file: &Path, position: Position, message: &str) -> String {
    format!("{}:{}:{}: {message}", file.display(), position.line, position.column)
}
