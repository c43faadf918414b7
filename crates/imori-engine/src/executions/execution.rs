//! The stored document of an execution.

use std::time::Duration;

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

use super::status::Status;

/// An execution's document, and how it changes.
#[derive(Debug, Clone)]
pub struct Execution(Map);

/// What leads to an execution.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The user for whom it runs.
    pub user: String,
    /// More of its context, as the client gave it.
    pub context: Map,
    /// The rule that asked for it, if one did.
    pub rule: Option<RuleOrigin>,
    /// The execution of which it is a part.
    pub parent: Option<String>,
    /// Milliseconds before it starts.
    pub delay_ms: u64,
    /// Parameters that an earlier execution had: they are rendered, and text in them is no template.
    pub literals: Map,
}

/// A rule and its event.
#[derive(Debug, Clone)]
pub struct RuleOrigin {
    /// The rule's reference.
    pub rule: String,
    /// The rule's id.
    pub rule_id: String,
    /// The trigger's reference.
    pub trigger: String,
    /// The trigger's type.
    pub trigger_type: String,
    /// The event's id.
    pub trigger_instance: String,
}

impl Execution {
    /// A requested execution of this action.
    pub fn new(id: &str, action: &Map, parameters: Map, origin: Origin, now: Timestamp) -> Execution {
        let text = |key: &str| action.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut context = origin.context;
        context.insert("user", origin.user);
        context.insert("pack", text("pack"));
        let mut document = Map::new();
        document.insert("id", id);
        document.insert("action", text("ref"));
        document.insert("pack", text("pack"));
        document.insert("runner", text("runner_type"));
        if let Some(rule) = &origin.rule {
            let reference =
                |name: &str, id: &str| -> Map { [("name", name), ("id", id)].into_iter().collect() };
            context.insert("rule", reference(&rule.rule, &rule.rule_id));
            context.insert("trigger_instance", reference("", &rule.trigger_instance));
            document.insert("rule", rule.rule.as_str());
            document.insert("trigger", rule.trigger.as_str());
            document.insert("trigger_type", rule.trigger_type.as_str());
            document.insert("trigger_instance", rule.trigger_instance.as_str());
        }
        if let Some(parent) = origin.parent {
            let given = context.get("parent").and_then(Value::as_map);
            let mut link = given.cloned().unwrap_or_default();
            link.insert("execution_id", parent.as_str());
            context.insert("parent", link);
            document.insert("parent", parent);
        }
        document.insert("parameters", parameters);
        document.insert("context", context);
        document.insert("start_timestamp", now.to_string());
        document.insert("log", Vec::new());
        let mut execution = Execution(document);
        execution.note(Status::Requested, now);
        if origin.delay_ms > 0 {
            execution.set("delay", i64::try_from(origin.delay_ms).unwrap_or(i64::MAX));
            execution.delay(Duration::from_millis(origin.delay_ms), now);
        }
        execution
    }

    /// The next try of this execution, which has ended: requested, or delayed until `due`. `retry` is what its context
    /// says of that under `policies`.
    pub fn again(&self, id: &str, retry: Map, due: Option<Timestamp>, now: Timestamp) -> Execution {
        const KEPT: [&str; 9] = [
            "action",
            "pack",
            "runner",
            "rule",
            "trigger",
            "trigger_type",
            "trigger_instance",
            "parameters",
            "context",
        ];
        let mut document = Map::new();
        document.insert("id", id);
        for (key, value) in self.0.iter().filter(|(key, _)| KEPT.contains(key)) {
            document.insert(key, value.clone());
        }
        let mut context = self.map("context").cloned().unwrap_or_default();
        context.insert("policies", [("retry", retry)].into_iter().collect::<Map>());
        document.insert("context", context);
        document.insert("start_timestamp", now.to_string());
        document.insert("log", Vec::new());
        let mut execution = Execution(document);
        execution.note(Status::Requested, now);
        if let Some(due) = due {
            execution.delay_until(due, now);
        }
        execution
    }

    /// Delays a requested execution.
    pub(crate) fn delay(&mut self, delay: Duration, now: Timestamp) {
        let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        self.delay_until(now.plus_micros(delay).unwrap_or(Timestamp::MAX), now);
    }

    fn delay_until(&mut self, due: Timestamp, now: Timestamp) {
        self.set("delayed_until", due.to_string());
        self.note(Status::Delayed, now);
    }

    /// The execution of a stored document.
    pub(crate) fn stored(document: Map) -> Execution {
        Execution(document)
    }

    /// The document.
    pub fn document(&self) -> &Map {
        &self.0
    }

    /// The text of a key; empty if it is missing.
    pub fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The object of a key; `None` if it is missing.
    pub fn map(&self, key: &str) -> Option<&Map> {
        self.0.get(key).and_then(Value::as_map)
    }

    /// Sets a key.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key, value);
    }

    /// Sets the status, and notes it in the log.
    pub(crate) fn note(&mut self, status: Status, now: Timestamp) {
        self.0.insert("status", status.as_str());
        let entry: Map =
            [("timestamp", now.to_string()), ("status", status.as_str().to_owned())].into_iter().collect();
        if let Some(Value::List(log)) = self.0.get_mut("log") {
            log.push(Value::Map(entry));
        }
    }

    /// Notes that its action is about to run, and since which start of the machine this one runs.
    pub(crate) fn run(&mut self, boot: &str, now: Timestamp) {
        self.note(Status::Running, now);
        self.0.insert("boot", boot);
    }

    /// Ends the execution.
    pub fn end(&mut self, status: Status, result: Value, now: Timestamp) {
        self.note(status, now);
        self.0.remove("boot");
        let start = self
            .0
            .get("start_timestamp")
            .and_then(Value::as_str)
            .and_then(|text| text.parse::<Timestamp>().ok());
        self.0.insert("end_timestamp", now.to_string());
        if let Some(start) = start {
            let elapsed = now.micros().saturating_sub(start.micros());
            self.0.insert("elapsed_seconds", elapsed as f64 / 1e6);
        }
        self.0.insert("result", result);
    }
}
