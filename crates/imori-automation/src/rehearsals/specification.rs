//! The file of a rehearsal as typed parts.

use super::error::{RehearsalError, position_of};
use crate::value::{Map, Value};
use crate::workflows::CallStatus;
use crate::yaml::{Lines, load_with_lines};

/// The keys of a rehearsal.
const KEYS: &[&str] = &[
    "workflow",
    "inputs",
    "expected_inspection_errors",
    "expected_routes",
    "expected_task_sequence",
    "mock_action_executions",
    "expected_term_tasks",
    "expected_workflow_status",
    "expected_errors",
    "expected_output",
];

/// The keys of an action's outcome.
const MOCK_KEYS: &[&str] =
    &["task_id", "route", "seq_id", "item_id", "iter_id", "num_iter", "status", "result", "result_path"];

/// The statuses that an action can be given.
const CALL_STATUSES: &[(&str, CallStatus)] = &[
    ("running", CallStatus::Running),
    ("pending", CallStatus::Pending),
    ("paused", CallStatus::Paused),
    ("succeeded", CallStatus::Succeeded),
    ("failed", CallStatus::Failed),
    ("abandoned", CallStatus::Failed),
    ("timeout", CallStatus::TimedOut),
    ("canceled", CallStatus::Canceled),
];

/// The statuses that a workflow can be expected to have.
const WORKFLOW_STATUSES: &[&str] =
    &["running", "pausing", "paused", "canceling", "canceled", "succeeded", "failed"];

/// The kinds of errors that an inspection finds, by the names under which orquesta collects them.
pub(super) const KINDS: &[(&str, &str)] = &[
    ("syntax", "syntax"),
    ("semantics", "semantic"),
    ("expressions", "expression"),
    ("context", "context"),
    ("contents", "content"),
];

/// What a rehearsal gives and expects. A list or an object that is `None` is not compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Specification {
    pub(super) workflow: String,
    pub(super) inputs: Map,
    pub(super) inspection_errors: Map,
    pub(super) routes: Vec<Vec<String>>,
    pub(super) sequence: Vec<String>,
    pub(super) mocks: Vec<Mock>,
    pub(super) term_tasks: Option<Vec<String>>,
    pub(super) status: String,
    pub(super) errors: Option<Vec<Value>>,
    pub(super) output: Option<Map>,
    /// The places of all of these.
    pub(super) lines: Lines,
}

/// The outcome of an action.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Mock {
    pub(super) task: String,
    /// The position in the sequence of tasks at which it applies; anywhere without one.
    pub(super) sequence: Option<usize>,
    /// The item of a task with items.
    pub(super) item: Option<usize>,
    /// How often it applies.
    pub(super) uses: usize,
    pub(super) status: CallStatus,
    pub(super) result: Value,
    /// A file with the result, in the place of `result`.
    pub(super) result_path: Option<String>,
}

impl Specification {
    /// Reads a rehearsal.
    ///
    /// # Errors
    /// All errors of the text, at their places.
    pub(super) fn read(text: &str) -> Result<Specification, Vec<RehearsalError>> {
        let (document, lines) = load_with_lines(text)
            .map_err(|error| vec![RehearsalError::in_rehearsal(position_of(&error), error.message)])?;
        let mut reader = Reader { lines: &lines, errors: Vec::new() };
        let none = Map::new();
        let map = document.as_map().unwrap_or(&none);
        if document.as_map().is_none() {
            reader.refuse(&[], "a rehearsal is an object; begin with `workflow: PATH`");
        } else if map.contains_key("workflow_state") {
            let reason =
                "`workflow_state` is the state of another engine; rehearse the workflow from its start";
            reader.refuse(&["workflow_state"], reason);
        } else {
            reader.check_keys(map, &[], KEYS);
        }
        let specification = Specification {
            workflow: reader.text(map, &[], "workflow").unwrap_or_default(),
            inputs: reader.object(map, "inputs").unwrap_or_default(),
            inspection_errors: reader.object(map, "expected_inspection_errors").unwrap_or_default(),
            routes: reader.routes(map),
            sequence: reader.texts(map, "expected_task_sequence").unwrap_or_default(),
            mocks: reader.mocks(map),
            term_tasks: reader.texts(map, "expected_term_tasks"),
            status: reader.status(map),
            errors: reader.list(map, "expected_errors"),
            output: reader.object(map, "expected_output"),
            lines: lines.clone(),
        };
        if reader.errors.is_empty() {
            let runs = specification.inspection_errors.is_empty();
            for key in ["workflow", "expected_task_sequence"] {
                if (runs || key == "workflow") && !map.contains_key(key) {
                    reader.refuse(&[], &format!("`{key}` is missing"));
                }
            }
            reader.check_kinds(&specification.inspection_errors);
        }
        match reader.errors.is_empty() {
            true => Ok(specification),
            false => Err(reader.errors),
        }
    }
}

/// Takes parts of a document, and collects what is wrong with them.
struct Reader<'a> {
    lines: &'a Lines,
    errors: Vec<RehearsalError>,
}

impl Reader<'_> {
    fn refuse(&mut self, path: &[&str], message: &str) {
        self.errors.push(RehearsalError::in_rehearsal(self.lines.nearest(path), message));
    }

    fn refuse_kind(&mut self, path: &[&str], value: &Value, wanted: &str) {
        let key = path.last().copied().unwrap_or_default();
        self.refuse(path, &format!("`{key}` is a JSON {}; write {wanted}", value.type_name()));
    }

    fn check_keys(&mut self, map: &Map, path: &[&str], known: &[&str]) {
        for (key, _) in map.iter().filter(|(key, _)| !known.contains(key)) {
            let path: Vec<&str> = path.iter().copied().chain([key]).collect();
            self.refuse(&path, &format!("key `{key}` is unknown; use one of {}", known.join(", ")));
        }
    }

    fn check_kinds(&mut self, expected: &Map) {
        for (kind, errors) in expected.iter() {
            let path = ["expected_inspection_errors", kind];
            if !KINDS.iter().any(|(known, _)| *known == kind) {
                let kinds: Vec<&str> = KINDS.iter().map(|(known, _)| *known).collect();
                self.refuse(
                    &path,
                    &format!("`{kind}` is no kind of errors; use one of {}", kinds.join(", ")),
                );
            } else if errors
                .as_list()
                .is_none_or(|errors| errors.iter().any(|error| error.get("message").is_none()))
            {
                self.refuse(&path, "each error is an object with a `message`, in a list");
            }
        }
    }

    fn text(&mut self, map: &Map, above: &[&str], key: &str) -> Option<String> {
        match map.get(key)? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            other => {
                let path: Vec<&str> = above.iter().copied().chain([key]).collect();
                self.refuse_kind(&path, other, "a text that is not empty");
                None
            }
        }
    }

    fn number(&mut self, map: &Map, above: &[&str], key: &str) -> Option<usize> {
        let value = map.get(key)?;
        let number = value.as_int().and_then(|number| usize::try_from(number).ok());
        if number.is_none() {
            let path: Vec<&str> = above.iter().copied().chain([key]).collect();
            self.refuse(&path, &format!("`{key}` is no whole number from 0 on"));
        }
        number
    }

    fn object(&mut self, map: &Map, key: &str) -> Option<Map> {
        match map.get(key)? {
            Value::Map(object) => Some(object.clone()),
            other => {
                self.refuse_kind(&[key], other, "an object");
                None
            }
        }
    }

    fn list(&mut self, map: &Map, key: &str) -> Option<Vec<Value>> {
        match map.get(key)? {
            Value::List(items) => Some(items.clone()),
            other => {
                self.refuse_kind(&[key], other, "a list");
                None
            }
        }
    }

    fn texts(&mut self, map: &Map, key: &str) -> Option<Vec<String>> {
        let items = self.list(map, key)?;
        let mut texts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.refuse(&[key, &at.to_string()], "the name of a task is a text"),
            }
        }
        Some(texts)
    }

    fn routes(&mut self, map: &Map) -> Vec<Vec<String>> {
        let Some(routes) = self.list(map, "expected_routes") else { return vec![Vec::new()] };
        let texts = |route: &Value| {
            let steps = route.as_list()?.iter();
            steps.map(|step| step.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>()
        };
        let read: Option<Vec<Vec<String>>> = routes.iter().map(texts).collect();
        if read.is_none() {
            self.refuse(&["expected_routes"], "each route is a list of transitions such as `task1__t0`");
        }
        read.unwrap_or_default()
    }

    fn status(&mut self, map: &Map) -> String {
        let status =
            self.text(map, &[], "expected_workflow_status").unwrap_or_else(|| "succeeded".to_owned());
        if !WORKFLOW_STATUSES.contains(&status.as_str()) {
            let reason =
                format!("`{status}` is no status of a workflow; use one of {}", WORKFLOW_STATUSES.join(", "));
            self.refuse(&["expected_workflow_status"], &reason);
        }
        status
    }

    fn mocks(&mut self, map: &Map) -> Vec<Mock> {
        let items = self.list(map, "mock_action_executions").unwrap_or_default();
        let mut mocks = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let at = at.to_string();
            let path = ["mock_action_executions", at.as_str()];
            match item.as_map() {
                Some(item) => mocks.extend(self.mock(item, &path)),
                None => self.refuse(&path, "the outcome of an action is an object with `task_id`"),
            }
        }
        mocks
    }

    fn mock(&mut self, item: &Map, path: &[&str]) -> Option<Mock> {
        self.check_keys(item, path, MOCK_KEYS);
        if !item.contains_key("task_id") {
            self.refuse(path, "`task_id` is missing");
        }
        // The route and the number of the first use change nothing, as in orquesta.
        for key in ["route", "iter_id"] {
            self.number(item, path, key);
        }
        let status = self.text(item, path, "status").unwrap_or_else(|| "succeeded".to_owned());
        let known = CALL_STATUSES.iter().find(|(name, _)| *name == status);
        if known.is_none() {
            let names: Vec<&str> = CALL_STATUSES.iter().map(|(name, _)| *name).collect();
            let path: Vec<&str> = path.iter().copied().chain(["status"]).collect();
            self.refuse(
                &path,
                &format!("`{status}` is no status of an action; use one of {}", names.join(", ")),
            );
        }
        Some(Mock {
            task: self.text(item, path, "task_id")?,
            sequence: self.number(item, path, "seq_id"),
            item: self.number(item, path, "item_id"),
            uses: self.number(item, path, "num_iter").unwrap_or(1),
            status: known?.1,
            result: item.get("result").cloned().unwrap_or_default(),
            result_path: self.text(item, path, "result_path"),
        })
    }
}
