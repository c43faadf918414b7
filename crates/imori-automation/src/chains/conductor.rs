//! Leads an action chain: one call at a time, the next by the end of the last.

use std::sync::Arc;
use std::time::Duration;

use super::definition::{Chain, Task};
use super::state::{Current, State};
use crate::limits::CHAIN_CALLS_MAX;
use crate::templates::{Context, Decrypt, Lookup, render_value};
use crate::times::Timestamp;
use crate::value::{Map, Value};
use crate::workflows::{
    Answers, Call, CallStatus, Command, Conductor, Step, Transition, WorkflowEvent, WorkflowStatus,
};

/// What the templates of a chain read besides its parameters, results and variables.
#[derive(Clone, Default)]
pub struct ChainContext {
    /// The datastore: `st2kv`.
    pub datastore: Option<Arc<dyn Lookup>>,
    /// Decrypts for `decrypt_kv`.
    pub decrypt: Option<Arc<Decrypt>>,
    /// The configuration of the pack: `config_context`.
    pub config: Map,
}

/// Leads the executions of a chain.
pub struct ChainConductor {
    chain: Arc<Chain>,
    context: ChainContext,
}

impl ChainConductor {
    /// The conductor of this chain.
    pub fn new(chain: Arc<Chain>, context: ChainContext) -> ChainConductor {
        ChainConductor { chain, context }
    }

    fn start(&self, parameters: &Map, context: &Map, now: Timestamp) -> Transition {
        let mut state = State::new(parameters.clone(), context.clone());
        match self.render(&self.chain.vars, &state) {
            Ok(vars) => state.vars = vars,
            Err((_, reason)) => {
                let reason = format!("Failed initializing ``vars`` in chain. {reason}");
                return ended(state, WorkflowStatus::Failed, Some(reason));
            }
        }
        match self.chain.first.clone() {
            Some(first) => self.call(state, &first, now),
            None => ended(state, WorkflowStatus::Succeeded, None),
        }
    }

    /// Calls the action of a task.
    fn call(&self, mut state: State, name: &str, now: Timestamp) -> Transition {
        let Some(task) = self.chain.task(name) else {
            let reason = format!("Failed to get next node \"{name}\". The task does not exist.");
            return ended(state, WorkflowStatus::Failed, Some(reason));
        };
        if state.calls >= CHAIN_CALLS_MAX {
            let reason = format!("the chain has run {CHAIN_CALLS_MAX} tasks; end its loop");
            return ended(state, WorkflowStatus::Failed, Some(reason));
        }
        let parameters = match self.render(&task.parameters, &state) {
            Ok(parameters) => parameters,
            Err((key, reason)) => {
                let reason = format!(
                    "Failed to run task \"{name}\". Parameter rendering failed. Failed rendering value for action \
                     parameter \"{key}\" in task \"{name}\" (template string={}): {reason}",
                    shown(&task.parameters, &key)
                );
                return ended(state, WorkflowStatus::Failed, Some(reason));
            }
        };
        state.calls += 1;
        let id = state.calls.to_string();
        let created_at = now.to_string();
        state.current = Some(Current { call: id.clone(), task: name.to_owned(), created_at, waits: false });
        let call = Call {
            id,
            task: name.to_owned(),
            route: 0,
            item: None,
            action: task.action.clone(),
            parameters,
            delay: Duration::ZERO,
        };
        transition(&state, vec![Command::Run(call)])
    }

    /// What follows from a change of the current call.
    fn changed(&self, mut state: State, status: CallStatus, result: &Value, now: Timestamp) -> Transition {
        let Some(mut current) = state.current.take() else { return transition(&state, Vec::new()) };
        if let CallStatus::Running | CallStatus::Pending | CallStatus::Paused = status {
            current.waits = status != CallStatus::Running;
            state.current = Some(current);
            return transition(&state, Vec::new());
        }
        state.note(&current, status, result, now);
        if state.is_canceled || status == CallStatus::Canceled {
            return ended(state, WorkflowStatus::Canceled, None);
        }
        let Some(task) = self.chain.task(&current.task) else {
            let reason = format!("task \"{}\" does not exist", current.task);
            return ended(state, WorkflowStatus::Failed, Some(reason));
        };
        if let Err(reason) = self.publish(&mut state, task) {
            return ended(state, WorkflowStatus::Failed, Some(reason));
        }
        let (next, end) = match status {
            CallStatus::Succeeded => (&task.on_success, WorkflowStatus::Succeeded),
            CallStatus::TimedOut => (&task.on_failure, WorkflowStatus::TimedOut),
            _ => (&task.on_failure, WorkflowStatus::Failed),
        };
        if next.is_empty() {
            return ended(state, end, None);
        }
        if state.is_held {
            state.next = Some(next.clone());
            return transition(&state, Vec::new());
        }
        self.call(state, next, now)
    }

    fn publish(&self, state: &mut State, task: &Task) -> Result<(), String> {
        let published = self.render(&task.publish, state).map_err(|(key, reason)| {
            format!(
                "Failed rendering value for publish parameter \"{key}\" in task \"{}\" (template string={}): {reason}",
                task.name,
                shown(&task.publish, &key)
            )
        })?;
        for (name, value) in published {
            state.vars.insert(name.as_str(), value.clone());
            state.published.insert(name, value);
        }
        Ok(())
    }

    /// The values with their templates rendered, or the key of one that fails and its reason.
    fn render(&self, values: &Map, state: &State) -> Result<Map, (String, String)> {
        if values.is_empty() {
            return Ok(Map::new());
        }
        let context = self.names(state);
        let render = |(key, value): (&str, &Value)| match render_value(value, &context) {
            Ok(value) => Ok((key.to_owned(), value)),
            Err(error) => Err((key.to_owned(), error.to_string())),
        };
        values.iter().map(render).collect()
    }

    /// The names that templates can read. A later one hides an earlier one.
    fn names(&self, state: &State) -> Context {
        let results = state.results();
        let mut context = Context::new();
        for (name, value) in [&state.parameters, &results, &state.vars].into_iter().flat_map(Map::iter) {
            context = context.with(name, value);
        }
        context = context.with("__results", &Value::Map(results));
        if let Some(datastore) = &self.context.datastore {
            context = context
                .with_lookup("st2kv", Arc::clone(datastore))
                .with_lookup("system", Arc::new(SystemScope(Arc::clone(datastore))));
        }
        if let Some(decrypt) = &self.context.decrypt {
            context = context.with_decrypt(Arc::clone(decrypt));
        }
        let parent = state.context.get("parent").cloned().unwrap_or_default();
        let parent: Map = [("parent", parent)].into_iter().collect();
        context
            .with("action_context", &Value::Map(parent))
            .with("config_context", &Value::Map(self.context.config.clone()))
    }
}

impl Conductor for ChainConductor {
    fn advance(&self, state: Option<&Map>, event: &WorkflowEvent, now: Timestamp, _: &Answers) -> Step {
        let mut state = match (state, event) {
            (None, WorkflowEvent::Started { parameters, context }) => {
                return Step::Next(self.start(parameters, context, now));
            }
            (state, _) => State::read(state.unwrap_or(&Map::new())),
        };
        if state.end.is_some() {
            return Step::Next(transition(&state, Vec::new()));
        }
        let call = state.current.as_ref().map(|current| current.call.clone());
        Step::Next(match event {
            WorkflowEvent::Changed { call: changed, status, result } if call.as_ref() == Some(changed) => {
                self.changed(state, *status, result, now)
            }
            WorkflowEvent::PauseRequested if !state.is_held && !state.is_canceled => {
                state.is_held = true;
                transition(&state, call.map(Command::Pause).into_iter().collect())
            }
            WorkflowEvent::ResumeRequested if !state.is_canceled => {
                state.is_held = false;
                match state.next.take() {
                    Some(next) => self.call(state, &next, now),
                    None => transition(&state, call.map(Command::Resume).into_iter().collect()),
                }
            }
            WorkflowEvent::CancelRequested => match call {
                Some(call) => {
                    state.is_canceled = true;
                    transition(&state, vec![Command::Cancel(call)])
                }
                None => ended(state, WorkflowStatus::Canceled, None),
            },
            // Only workflows of Orquesta run tasks again, as in StackStorm.
            WorkflowEvent::Started { .. }
            | WorkflowEvent::Changed { .. }
            | WorkflowEvent::PauseRequested
            | WorkflowEvent::ResumeRequested
            | WorkflowEvent::RerunRequested(_) => transition(&state, Vec::new()),
        })
    }

    fn task_context(&self, task: &str) -> Map {
        let Some(task) = self.chain.task(task) else { return Map::new() };
        let mut shown = Map::new();
        shown.insert("name", task.name.as_str());
        shown.insert("ref", task.action.as_str());
        shown.insert("parameters", task.parameters.clone());
        shown.insert("on_success", task.on_success.as_str());
        shown.insert("on_failure", task.on_failure.as_str());
        shown.insert("publish", task.publish.clone());
        shown.insert("notify", task.notify.clone());
        shown
    }
}

/// The system's keys by their names alone.
struct SystemScope(Arc<dyn Lookup>);

impl Lookup for SystemScope {
    fn look_up(&self, path: &[&str]) -> Option<Value> {
        let path: Vec<&str> = ["system"].into_iter().chain(path.iter().copied()).collect();
        self.0.look_up(&path)
    }
}

fn shown(values: &Map, key: &str) -> String {
    match values.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_json(),
        None => String::new(),
    }
}

fn transition(state: &State, commands: Vec<Command>) -> Transition {
    let status = state.status();
    let result = state.end.map(|_| result(state));
    Transition { state: state.to_map(), commands, status, result: result.map(Value::Map) }
}

fn ended(mut state: State, status: WorkflowStatus, error: Option<String>) -> Transition {
    state.end = Some(status);
    let mut result = result(&state);
    if let Some(error) = error {
        result.insert("error", error);
    }
    // The tasks are in the result; an ended chain needs its state no more.
    state.tasks = Vec::new();
    Transition { state: state.to_map(), commands: Vec::new(), status, result: Some(Value::Map(result)) }
}

fn result(state: &State) -> Map {
    let mut result = Map::new();
    result.insert("tasks", state.tasks.clone());
    let displays = state.context.get("runner_parameters").and_then(|given| given.get("display_published"));
    if displays.is_none_or(Value::is_truthy) {
        result.insert("published", state.published.clone());
    }
    result
}
