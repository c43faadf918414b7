//! The state of an execution as JSON. What is empty is left out.

use super::contexts::Context;
use super::state::{Item, RetryState, Run, Staged, State};
use super::statuses::{TaskStatus, workflow_name, workflow_status};
use crate::value::{Map, Value};

/// The JSON of a state.
pub(super) fn to_json(state: State) -> Map {
    let mut json = Map::new();
    json.insert("status", workflow_name(state.status));
    if state.is_paused_by_user {
        json.insert("paused_by_user", true);
    }
    json.insert("contexts", list(state.contexts, context_to_json));
    let routes = state.routes.into_iter();
    json.insert("routes", list(routes, |steps| Value::List(steps.into_iter().map(Value::String).collect())));
    json.insert("runs", list(state.runs, run_to_json));
    json.insert("staged", list(state.staged, staged_to_json));
    if !state.errors.is_empty() {
        json.insert("errors", list(state.errors, Value::Map));
    }
    if let Some(output) = state.output {
        json.insert("output", output);
    }
    json
}

/// The state of a JSON; `None` where it is none.
pub(super) fn from_json(json: &Map) -> Option<State> {
    let items = |key: &str| json.get(key).and_then(Value::as_list).unwrap_or_default().iter();
    let route = |steps: &Value| -> Option<Vec<String>> {
        steps.as_list()?.iter().map(|step| step.as_str().map(str::to_owned)).collect()
    };
    Some(State {
        status: workflow_status(json.get("status")?.as_str()?)?,
        is_paused_by_user: is_set(json, "paused_by_user"),
        contexts: items("contexts").map(context_from_json).collect::<Option<_>>()?,
        routes: items("routes").map(route).collect::<Option<_>>()?,
        runs: items("runs").map(run_from_json).collect::<Option<_>>()?,
        staged: items("staged").map(staged_from_json).collect::<Option<_>>()?,
        errors: items("errors").map(|error| error.as_map().cloned()).collect::<Option<_>>()?,
        output: json.get("output").and_then(Value::as_map).cloned(),
    })
}

fn list<T>(items: impl IntoIterator<Item = T>, json: impl Fn(T) -> Value) -> Value {
    Value::List(items.into_iter().map(json).collect())
}

fn is_set(json: &Map, key: &str) -> bool {
    json.get(key).is_some_and(Value::is_truthy)
}

fn place(index: usize) -> Value {
    Value::Int(i64::try_from(index).unwrap_or(i64::MAX))
}

fn index(json: &Map, key: &str) -> Option<usize> {
    usize::try_from(json.get(key)?.as_int()?).ok()
}

fn context_to_json(context: Context) -> Value {
    let mut json = Map::new();
    match context {
        Context::Root(map) => {
            json.insert("vars", map);
        }
        Context::Change { parent, published } => {
            json.insert("after", place(parent));
            json.insert("vars", published);
        }
        Context::Join { left, right } => {
            json.insert("left", place(left));
            json.insert("right", place(right));
        }
    }
    Value::Map(json)
}

fn context_from_json(json: &Value) -> Option<Context> {
    let json = json.as_map()?;
    Some(match json.get("vars").and_then(Value::as_map) {
        None => Context::Join { left: index(json, "left")?, right: index(json, "right")? },
        Some(vars) => match index(json, "after") {
            Some(parent) => Context::Change { parent, published: vars.clone() },
            None => Context::Root(vars.clone()),
        },
    })
}

fn prev_to_json(prev: Vec<(String, usize)>) -> Map {
    prev.into_iter().map(|(transition, run)| (transition, place(run))).collect()
}

fn prev_from_json(json: &Map) -> Vec<(String, usize)> {
    let entries = json.get("prev").and_then(Value::as_map).into_iter().flat_map(Map::iter);
    entries
        .filter_map(|(transition, run)| Some((transition.to_owned(), usize::try_from(run.as_int()?).ok()?)))
        .collect()
}

fn run_to_json(run: Run) -> Value {
    let mut json = Map::new();
    json.insert("task", run.task);
    if run.route > 0 {
        json.insert("route", i64::from(run.route));
    }
    json.insert("context", place(run.context));
    if !run.prev.is_empty() {
        json.insert("prev", prev_to_json(run.prev));
    }
    if !run.next.is_empty() {
        json.insert("next", run.next.into_iter().collect::<Map>());
    }
    if let Some(status) = run.status {
        json.insert("status", status.name());
    }
    if run.is_terminal {
        json.insert("terminal", true);
    }
    if let Some(retry) = run.retry {
        json.insert("retry", vec![Value::Int(retry.count), Value::Int(retry.delay), Value::Int(retry.tally)]);
    }
    Value::Map(json)
}

fn run_from_json(json: &Value) -> Option<Run> {
    let json = json.as_map()?;
    let next = json.get("next").and_then(Value::as_map).into_iter().flat_map(Map::iter);
    let retry = match json.get("retry").and_then(Value::as_list) {
        Some([count, delay, tally]) => {
            Some(RetryState { count: count.as_int()?, delay: delay.as_int()?, tally: tally.as_int()? })
        }
        _ => None,
    };
    Some(Run {
        task: json.get("task")?.as_str()?.to_owned(),
        route: route(json)?,
        context: index(json, "context")?,
        prev: prev_from_json(json),
        next: next.map(|(transition, holds)| (transition.to_owned(), holds.is_truthy())).collect(),
        status: status(json)?,
        is_terminal: is_set(json, "terminal"),
        retry,
    })
}

fn route(json: &Map) -> Option<u32> {
    json.get("route").map_or(Some(0), |route| u32::try_from(route.as_int()?).ok())
}

/// The status, if there is one; `None` where it is unknown.
fn status(json: &Map) -> Option<Option<TaskStatus>> {
    match json.get("status") {
        None | Some(Value::Null) => Some(None),
        Some(name) => TaskStatus::of(name.as_str()?).map(Some),
    }
}

fn staged_to_json(staged: Staged) -> Value {
    let mut json = Map::new();
    json.insert("task", staged.task);
    json.insert("route", i64::from(staged.route));
    json.insert("context", place(staged.context));
    json.insert("prev", prev_to_json(staged.prev));
    let flags = [
        ("ready", staged.is_ready),
        ("completed", staged.is_completed),
        ("runs_on_fail", staged.runs_on_fail),
    ];
    for (key, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        json.insert(key, true);
    }
    if let Some(delay) = staged.retry_delay {
        json.insert("retry_delay", delay);
    }
    if let Some(items) = staged.items {
        json.insert("items", list(items, item_to_json));
    }
    Value::Map(json)
}

fn staged_from_json(json: &Value) -> Option<Staged> {
    let json = json.as_map()?;
    let items = json.get("items").and_then(Value::as_list);
    Some(Staged {
        task: json.get("task")?.as_str()?.to_owned(),
        route: route(json)?,
        context: index(json, "context")?,
        prev: prev_from_json(json),
        is_ready: is_set(json, "ready"),
        retry_delay: json.get("retry_delay").and_then(Value::as_int),
        items: items
            .map(|items| items.iter().map(item_from_json).collect::<Option<_>>())
            .map_or(Some(None), |items| items.map(Some))?,
        is_completed: is_set(json, "completed"),
        runs_on_fail: is_set(json, "runs_on_fail"),
    })
}

fn item_to_json(item: Item) -> Value {
    let mut json = Map::new();
    if let Some(status) = item.status {
        json.insert("status", status.name());
    }
    if !item.result.is_null() {
        json.insert("result", item.result);
    }
    Value::Map(json)
}

fn item_from_json(json: &Value) -> Option<Item> {
    let json = json.as_map()?;
    Some(Item { status: status(json)?, result: json.get("result").cloned().unwrap_or_default() })
}
