//! Runs a rehearsal.

use std::collections::BTreeMap;

use super::error::{RehearsalError, position_of};
use super::mocks::Mocks;
use super::specification::{KINDS, Specification};
use crate::limits::REHEARSAL_RUNS_MAX;
use crate::orquesta::{Problem, Round, Unevaluated, Workflow};
use crate::value::Value;
use crate::workflows::Answers;
use crate::yaml::{Lines, Position, load_with_lines};

/// A rehearsal that has been read.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsal {
    specification: Specification,
}

impl Rehearsal {
    /// Reads a rehearsal from YAML.
    ///
    /// # Errors
    /// All errors of the text, at their places.
    pub fn read(text: &str) -> Result<Rehearsal, Vec<RehearsalError>> {
        Specification::read(text).map(|specification| Rehearsal { specification })
    }

    /// The path of the workflow's file, and its place.
    pub fn workflow(&self) -> (&str, Position) {
        (&self.specification.workflow, self.specification.lines.nearest(&["workflow"]))
    }

    /// The paths of the files with results of actions, each with its place.
    pub fn result_files(&self) -> impl Iterator<Item = (&str, Position)> {
        self.specification.mocks.iter().enumerate().filter_map(|(at, mock)| {
            let path = ["mock_action_executions", &at.to_string(), "result_path"];
            Some((mock.result_path.as_deref()?, self.specification.lines.nearest(&path)))
        })
    }

    /// Leads the workflow through its tasks in rounds: all tasks that are ready begin, end in the order of their names with
    /// the outcomes that are given, and then the next ones begin. `workflow` is the text of its file, and `files` has the
    /// texts of the files with results by their paths. Returns what differs from what is expected, and what cannot be run.
    pub fn run(&self, workflow: &str, files: &BTreeMap<String, String>) -> Vec<RehearsalError> {
        let (document, lines) = match load_with_lines(workflow) {
            Ok(read) => read,
            Err(error) => return vec![RehearsalError::in_workflow(position_of(&error), error.message)],
        };
        let read = Workflow::of(&document, None);
        if !self.specification.inspection_errors.is_empty() {
            return self.compare_problems(&read.err().unwrap_or_default());
        }
        let read = match read {
            Ok(read) => read,
            Err(problems) => return problems.iter().map(|problem| located(problem, &lines)).collect(),
        };
        let mocks = match Mocks::new(&self.specification, &read, files) {
            Ok(mocks) => mocks,
            Err(errors) => return errors,
        };
        let answers = Answers::new();
        match self.lead(&read, mocks, &answers) {
            Ok(round) => self.compare(&round),
            Err(Stop::Error(error)) => vec![error],
            Err(Stop::Unevaluated(Unevaluated(expression))) => {
                let reason = format!(
                    "expression `{expression}` is evaluated by Python in an execution, which a rehearsal does not start; \
                     use a simpler form of it"
                );
                vec![RehearsalError::in_workflow(position_in(workflow, &expression), reason)]
            }
        }
    }

    fn lead<'a>(
        &self,
        workflow: &'a Workflow,
        mut mocks: Mocks<'_>,
        answers: &'a Answers,
    ) -> Result<Round<'a>, Stop> {
        let mut round = Round::start(workflow, &self.specification.inputs, answers)?;
        loop {
            let begun = round.begin()?;
            if begun.is_empty() {
                break;
            }
            if round.sequence().len() > REHEARSAL_RUNS_MAX {
                let position = self.specification.lines.nearest(&["expected_task_sequence"]);
                let reason =
                    format!("the workflow has more than {REHEARSAL_RUNS_MAX} runs of tasks; end its cycle");
                return Err(Stop::Error(RehearsalError::in_rehearsal(position, reason)));
            }
            for task in &begun {
                let end = mocks.end(task, &round).map_err(Stop::Error)?;
                round.end(task, &end)?;
            }
        }
        round.finish()?;
        Ok(round)
    }

    /// What differs between an execution and what is expected of it.
    fn compare(&self, round: &Round<'_>) -> Vec<RehearsalError> {
        let expected = &self.specification;
        let mut errors = Vec::new();
        let mut differ = |key: &str, what: &str, actual: String, expected: String| {
            let position = self.specification.lines.nearest(&[key]);
            let message = format!("the {what} is {actual}, and not {expected}");
            errors.push(RehearsalError::in_rehearsal(position, message));
        };
        let sequence = names(&round.sequence());
        if sequence != routed(&expected.sequence) {
            differ("expected_task_sequence", "sequence of tasks", list(&sequence), list(&expected.sequence));
        }
        if round.routes() != expected.routes {
            let shown = |routes: &[Vec<String>]| format!("{routes:?}");
            differ("expected_routes", "list of routes", shown(round.routes()), shown(&expected.routes));
        }
        if round.status() != expected.status {
            let quoted = |status: &str| format!("`{status}`");
            let mut actual = quoted(round.status());
            if round.has_failed() && expected.errors.is_none() {
                actual = format!("{actual} with the errors {}", errors_of(round));
            }
            differ("expected_workflow_status", "status of the workflow", actual, quoted(&expected.status));
        }
        if let Some(wanted) = &expected.errors
            && errors_of(round) != Value::List(wanted.clone())
        {
            let wanted = Value::List(wanted.clone()).to_json();
            differ("expected_errors", "list of errors", errors_of(round).to_json(), wanted);
        }
        if let Some(wanted) = &expected.output
            && round.output().cloned().unwrap_or_default() != *wanted
        {
            let actual = round.output().cloned().map_or(Value::Null, Value::Map).to_json();
            differ("expected_output", "output", actual, Value::Map(wanted.clone()).to_json());
        }
        if let Some(wanted) = &expected.term_tasks {
            let (mut actual, mut sorted) = (names(&round.terminal_tasks()), routed(wanted));
            actual.sort_unstable();
            sorted.sort_unstable();
            if actual != sorted {
                differ(
                    "expected_term_tasks",
                    "list of tasks at the ends of branches",
                    list(&actual),
                    list(wanted),
                );
            }
        }
        errors
    }

    /// What differs between the errors of an inspection and those that are expected. An error is the expected one if it
    /// has all that is said of that.
    fn compare_problems(&self, problems: &[Problem]) -> Vec<RehearsalError> {
        let mut errors = Vec::new();
        for (name, kind) in KINDS {
            let path = ["expected_inspection_errors", name];
            let wanted =
                self.specification.inspection_errors.get(name).and_then(Value::as_list).unwrap_or_default();
            let actual: Vec<Value> =
                problems.iter().filter(|problem| problem.kind == *kind).map(collected).collect();
            let is_it = |wanted: &Value, actual: &Value| {
                wanted
                    .as_map()
                    .is_some_and(|wanted| wanted.iter().all(|(key, part)| actual.get(key) == Some(part)))
            };
            let is_met = |wanted: &Value| actual.iter().any(|actual| is_it(wanted, actual));
            if wanted.len() != actual.len() || !wanted.iter().all(is_met) {
                let actual = Value::List(actual).to_json();
                let message = format!(
                    "the list of {name} errors is {actual}, and not {}",
                    Value::List(wanted.to_vec())
                );
                let position = self.specification.lines.nearest(&path);
                errors.push(RehearsalError::in_rehearsal(position, message));
            }
        }
        errors
    }
}

/// Why a rehearsal cannot go on.
enum Stop {
    Error(RehearsalError),
    Unevaluated(Unevaluated),
}

impl From<Unevaluated> for Stop {
    fn from(unevaluated: Unevaluated) -> Stop {
        Stop::Unevaluated(unevaluated)
    }
}

fn located(problem: &Problem, lines: &Lines) -> RehearsalError {
    RehearsalError::in_workflow(problem.position(lines), problem.message.as_str())
}

/// An error of an inspection with the keys that orquesta gives it, where the language of an expression is its type.
fn collected(problem: &Problem) -> Value {
    let Value::Map(mut map) = problem.to_value() else { return Value::Null };
    map.remove("type");
    if let Some(language) = map.remove("language") {
        map.insert("type", language);
    }
    Value::Map(map)
}

fn errors_of(round: &Round<'_>) -> Value {
    Value::List(round.errors().iter().cloned().map(Value::Map).collect())
}

/// Names of tasks, each with its route as orquesta writes it.
fn names(tasks: &[(&str, u32)]) -> Vec<String> {
    tasks.iter().map(|(task, route)| format!("{task}__r{route}")).collect()
}

fn routed(tasks: &[String]) -> Vec<String> {
    let with_route = |task: &String| if task.contains("__r") { task.clone() } else { format!("{task}__r0") };
    tasks.iter().map(with_route).collect()
}

/// Tasks as a rehearsal writes them: without the first route.
fn list(tasks: &[String]) -> String {
    let shown = tasks.iter().map(|task| task.strip_suffix("__r0").unwrap_or(task));
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}

/// The place of a part of a text; its start if the text does not have the part as it is.
fn position_in(text: &str, part: &str) -> Position {
    let before = text.find(part).and_then(|at| text.get(..at)).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Position { line: before.matches('\n').count() + 1, column }
}
