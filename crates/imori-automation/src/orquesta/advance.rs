//! The events of an execution.

use super::contexts::{Context, merged};
use super::execution::{Execution, NeedsAnswers, Origin};
use super::scheduling::call_id;
use super::state::{Staged, State};
use super::statuses::{TaskStatus, is_final};
use crate::definitions::{COMMANDS, Definition, Graph};
use crate::expressions::{Evaluator, Scope};
use crate::limits::{VALUE_DEPTH_MAX, WORKFLOW_STATE_BYTES_MAX};
use crate::value::{Map, Value};
use crate::workflows::{Answers, Command, Question, WorkflowEvent, WorkflowStatus};

/// What an event makes of a state.
pub(super) enum Advanced {
    /// The new state, the commands, and the result of a workflow that has ended.
    State(Box<State>, Vec<Command>, Option<Value>),
    /// The caller has to answer these first.
    Questions(Vec<Question>),
    /// The event is refused for this reason, and the state is as it was.
    Refused(String, Box<State>),
}

/// Works on an event. A state of `None` is that of an execution that has not started.
pub(super) fn advance(
    definition: &Definition,
    graph: &Graph,
    state: Option<State>,
    event: &WorkflowEvent,
    answers: &Answers,
) -> Advanced {
    let has_started = state.is_some();
    let mut execution = Execution {
        definition,
        graph,
        state: state.unwrap_or_else(State::new),
        evaluator: Evaluator::new(answers),
        commands: Vec::new(),
        steps: 0,
    };
    if let WorkflowEvent::RerunRequested(tasks) = event
        && let Some(reason) = execution.rerun_refusal(tasks)
    {
        return Advanced::Refused(reason, Box::new(execution.state));
    }
    let done = execution.event(event, has_started).and_then(|()| execution.finish());
    match done {
        Err(NeedsAnswers) => Advanced::Questions(execution.evaluator.questions),
        Ok(result) => Advanced::State(Box::new(execution.state), execution.commands, result),
    }
}

impl Execution<'_> {
    fn event(&mut self, event: &WorkflowEvent, has_started: bool) -> Result<(), NeedsAnswers> {
        match event {
            WorkflowEvent::Started { parameters, context } if !has_started => {
                self.prepare(parameters, context)?;
                self.schedule()
            }
            _ if !has_started => Ok(()),
            WorkflowEvent::Started { .. } => Ok(()),
            WorkflowEvent::Changed { call, status, result } => self.changed(call, (*status).into(), result),
            WorkflowEvent::PauseRequested => {
                self.pause();
                Ok(())
            }
            WorkflowEvent::ResumeRequested => self.resume(),
            WorkflowEvent::CancelRequested => {
                self.cancel();
                Ok(())
            }
            WorkflowEvent::RerunRequested(tasks) => self.rerun(tasks),
        }
    }

    /// Sets the variables of an execution that starts, and stages its first tasks.
    pub(super) fn prepare(&mut self, parameters: &Map, context: &Map) -> Result<(), NeedsAnswers> {
        let definition = self.definition;
        let mut scope = Scope::new(context.clone());
        let mut is_failed = false;
        let inputs = definition
            .input
            .iter()
            .map(|(name, default)| (name, parameters.get(name).unwrap_or(default), "input"));
        let vars = definition.vars.iter().map(|(name, value)| (name, value, "vars"));
        for (name, value, place) in inputs.chain(vars) {
            match self.evaluate(value, &scope, &format!("{place}.{name}"))? {
                Ok(value) => scope.set(name, value),
                Err(message) => {
                    self.log(&message, Origin::default());
                    is_failed = true;
                }
            }
        }
        if is_failed {
            self.fail();
            return Ok(());
        }
        self.state.contexts.push(Context::Root(scope.variables().clone()));
        for task in &self.graph.roots {
            self.state.staged.push(Staged {
                task: task.clone(),
                route: 0,
                context: 0,
                prev: Vec::new(),
                is_ready: true,
                retry_delay: None,
                items: None,
                is_completed: false,
                runs_on_fail: false,
            });
        }
        Ok(())
    }

    fn changed(&mut self, call: &str, event: TaskStatus, result: &Value) -> Result<(), NeedsAnswers> {
        let Some((run, item, old)) = self.open_call(call) else { return Ok(()) };
        // A call that waits has not run on, and one that runs has nothing new.
        if event == old {
            return Ok(());
        }
        let is_stopped = matches!(self.state.status, WorkflowStatus::Paused | WorkflowStatus::Pausing);
        if old.is_waiting() && is_stopped && !self.state.is_paused_by_user {
            self.state.status = WorkflowStatus::Running;
        }
        self.update(run, event, item, result)?;
        self.schedule()
    }

    /// The run, the item and the status of a call that has not ended.
    fn open_call(&self, call: &str) -> Option<(usize, Option<usize>, TaskStatus)> {
        let mut parts = call.split('/');
        let (task, run, tally) = (parts.next()?, parts.next()?.parse::<usize>().ok()?, parts.next()?);
        let item = match parts.next() {
            Some(item) => Some(item.parse::<usize>().ok()?),
            None => None,
        };
        let found = self.state.runs.get(run)?;
        let known = found.retry.map_or(0, |retry| retry.tally);
        let is_it = found.task == task && self.state.latest(task, found.route) == Some(run);
        if !is_it || call_id(task, run, known, item) != call || tally.parse::<i64>() != Ok(known) {
            return None;
        }
        let status = found.status?;
        let status = match item {
            None if self.definition.tasks.get(task)?.items.is_none() => status,
            None => return None,
            Some(at) => self.state.staged(task, found.route)?.items.as_ref()?.get(at)?.status?,
        };
        let is_open = status.is_active() || status.is_waiting();
        is_open.then_some((run, item, status))
    }

    /// The calls that have not ended, with their statuses.
    pub(super) fn open_calls(&self) -> Vec<(String, TaskStatus)> {
        let mut calls = Vec::new();
        let mut latest: Vec<usize> = self.state.latest_runs().map(|(at, _)| at).collect();
        latest.sort_unstable();
        for at in latest {
            let Some(run) = self.state.runs.get(at) else { continue };
            let tally = run.retry.map_or(0, |retry| retry.tally);
            let is_open = |status: &TaskStatus| status.is_active() || status.is_waiting();
            if self.definition.tasks.get(&run.task).is_some_and(|task| task.items.is_none()) {
                let status = run.status.filter(is_open);
                calls.extend(status.map(|status| (call_id(&run.task, at, tally, None), status)));
                continue;
            }
            let items = self.state.staged(&run.task, run.route).and_then(|staged| staged.items.as_ref());
            for (item, status) in items.into_iter().flatten().enumerate() {
                let status = status.status.filter(is_open);
                calls.extend(status.map(|status| (call_id(&run.task, at, tally, Some(item)), status)));
            }
        }
        calls
    }

    /// Changes the runs of lists of which not all items have ended, as a pause or a cancellation does.
    fn hold_lists(&mut self, active: TaskStatus, dormant: TaskStatus) {
        let lists: Vec<(usize, bool)> = self
            .state
            .latest_runs()
            .filter(|(_, run)| run.status.is_some_and(TaskStatus::is_active))
            .filter_map(|(at, run)| {
                let items = self.state.staged(&run.task, run.route)?.items.as_ref()?;
                let is =
                    |test: fn(TaskStatus) -> bool| items.iter().any(|item| item.status.is_some_and(test));
                let is_incomplete =
                    items.iter().any(|item| !item.status.is_some_and(TaskStatus::is_completed));
                is_incomplete.then(|| (at, is(TaskStatus::is_active)))
            })
            .collect();
        for (at, is_active) in lists {
            if let Some(run) = self.state.runs.get_mut(at) {
                run.status = Some(if is_active { active } else { dormant });
            }
        }
    }

    fn pause(&mut self) {
        if !matches!(
            self.state.status,
            WorkflowStatus::Running | WorkflowStatus::Pausing | WorkflowStatus::Paused
        ) || self.state.is_paused_by_user
        {
            return;
        }
        self.state.is_paused_by_user = true;
        let running = self.open_calls().into_iter().filter(|(_, status)| status.is_active());
        self.commands.extend(running.map(|(call, _)| Command::Pause(call)));
        self.hold_lists(TaskStatus::Pausing, TaskStatus::Paused);
        self.state.status = match self.state.has(TaskStatus::is_active) {
            true => WorkflowStatus::Pausing,
            false => WorkflowStatus::Paused,
        };
    }

    fn resume(&mut self) -> Result<(), NeedsAnswers> {
        if !matches!(self.state.status, WorkflowStatus::Pausing | WorkflowStatus::Paused) {
            return Ok(());
        }
        self.state.is_paused_by_user = false;
        let calls = self.open_calls();
        let paused: Vec<&String> =
            calls.iter().filter(|(_, status)| *status == TaskStatus::Paused).map(|(call, _)| call).collect();
        let has_paused = !paused.is_empty();
        self.commands.extend(paused.into_iter().cloned().map(Command::Resume));
        let is_pausing = |status: TaskStatus| status == TaskStatus::Pausing;
        for run in self.state.runs.iter_mut().filter(|run| run.status.is_some_and(is_pausing)) {
            run.status = Some(TaskStatus::Running);
        }
        let is_live = self.state.has(TaskStatus::is_active) || self.state.has_ready();
        self.state.status = match (is_live || has_paused, self.state.has(TaskStatus::is_waiting)) {
            (true, _) => WorkflowStatus::Running,
            (false, true) => WorkflowStatus::Paused,
            (false, false) => WorkflowStatus::Succeeded,
        };
        self.schedule()
    }

    fn cancel(&mut self) {
        if is_final(self.state.status) || self.state.status == WorkflowStatus::Canceling {
            return;
        }
        self.commands.extend(self.open_calls().into_iter().map(|(call, _)| Command::Cancel(call)));
        self.hold_lists(TaskStatus::Canceling, TaskStatus::Canceled);
        let is_retrying = |status: TaskStatus| status == TaskStatus::Retrying;
        for run in self.state.runs.iter_mut().filter(|run| run.status.is_some_and(is_retrying)) {
            run.status = Some(TaskStatus::Canceled);
        }
        self.state.status = match self.state.has(TaskStatus::is_active) {
            true => WorkflowStatus::Canceling,
            false => WorkflowStatus::Canceled,
        };
    }

    /// The result, if the workflow has ended.
    pub(super) fn finish(&mut self) -> Result<Option<Value>, NeedsAnswers> {
        if self.state_bytes() > WORKFLOW_STATE_BYTES_MAX {
            let message = format!(
                "WorkflowLimitError: the variables and results of the workflow take more than {WORKFLOW_STATE_BYTES_MAX} bytes; keep large data elsewhere"
            );
            self.state = State { status: WorkflowStatus::Failed, ..State::new() };
            self.commands.clear();
            self.log(&message, Origin::default());
        }
        if !is_final(self.state.status) {
            return Ok(None);
        }
        if self.state.output.is_none() {
            self.render_output()?;
        }
        let mut result = Map::new();
        result.insert("output", self.state.output.clone().filter(|output| !output.is_empty()));
        if self.state.status == WorkflowStatus::Failed {
            let errors = self.state.errors.iter().cloned().map(Value::Map).collect::<Vec<_>>();
            result.insert("errors", errors);
        }
        Ok(Some(Value::Map(result)))
    }

    fn render_output(&mut self) -> Result<(), NeedsAnswers> {
        let definition = self.definition;
        let ends = self.state.runs.iter().filter(|run| run.is_terminal).map(|run| run.context);
        let ends: Vec<usize> = ends.collect();
        let mut scope = Scope::new(merged(&self.state.contexts, &ends));
        scope.statuses = self.statuses();
        let mut output = Map::new();
        for (name, value) in &definition.output {
            match self.evaluate(value, &scope, &format!("output.{name}"))? {
                Ok(value) => {
                    scope.set(name, value.clone());
                    output.insert(name.as_str(), value);
                }
                Err(message) => {
                    self.log(&message, Origin::default());
                    self.fail();
                }
            }
        }
        self.state.output = (!output.is_empty()).then_some(output);
        Ok(())
    }

    fn state_bytes(&self) -> usize {
        let contexts = self.state.contexts.iter().map(|context| match context {
            Context::Root(map) | Context::Change { published: map, .. } => map_bytes(map, 0),
            Context::Join { .. } => 0,
        });
        let errors = self.state.errors.iter().map(|error| map_bytes(error, 0));
        let items = self.state.staged.iter().filter_map(|staged| staged.items.as_ref()).flatten();
        contexts.chain(errors).chain(items.map(|item| bytes(&item.result, 0))).sum()
    }

    /// Whether a task may run again: commands of the engine only follow tasks.
    pub(super) fn is_task(&self, name: &str) -> bool {
        !COMMANDS.contains(&name) && self.definition.tasks.contains_key(name)
    }
}

/// About the bytes that a value takes as JSON.
fn bytes(value: &Value, depth: usize) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        // What is too deep cannot be stored either.
        Value::List(_) | Value::Map(_) if depth > VALUE_DEPTH_MAX => WORKFLOW_STATE_BYTES_MAX,
        Value::List(items) => items.iter().map(|item| bytes(item, depth + 1) + 1).sum::<usize>() + 2,
        Value::Map(map) => map_bytes(map, depth + 1),
        _ => 8,
    }
}

fn map_bytes(map: &Map, depth: usize) -> usize {
    map.iter().map(|(key, value)| key.len() + 4 + bytes(value, depth)).sum::<usize>() + 2
}
