//! The stored document of an execution.

use std::time::Duration;

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

use super::status::Status;

/// An execution's document, and how it changes.
#[derive(Debug, Clone)]
pub(crate) struct Execution(Map);

/// What leads to an execution.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The user for whom it runs.
    pub(crate) user: String,
    /// More of its context, as the client gave it.
    pub(crate) context: Map,
    /// The rule that asked for it, if one did.
    pub(crate) rule: Option<RuleOrigin>,
    /// The execution of which it is a part.
    pub(crate) parent: Option<String>,
    /// Milliseconds before it starts.
    pub(crate) delay_ms: u64,
}

/// A rule and its event.
#[derive(Debug, Clone)]
pub(crate) struct RuleOrigin {
    /// The rule's reference.
    pub(crate) rule: String,
    /// The rule's id.
    pub(crate) rule_id: String,
    /// The trigger's reference.
    pub(crate) trigger: String,
    /// The trigger's type.
    pub(crate) trigger_type: String,
    /// The event's id.
    pub(crate) trigger_instance: String,
}

impl Execution {
    /// A requested execution of this action.
    pub(crate) fn new(id: &str, action: &Map, parameters: Map, origin: Origin, now: Timestamp) -> Execution {
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
    pub(crate) fn again(&self, id: &str, retry: Map, due: Option<Timestamp>, now: Timestamp) -> Execution {
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
    pub(crate) fn document(&self) -> &Map {
        &self.0
    }

    /// The text of a key; empty if it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// The object of a key; `None` if it is missing.
    pub(crate) fn map(&self, key: &str) -> Option<&Map> {
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
    pub(crate) fn end(&mut self, status: Status, result: Value, now: Timestamp) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_try_keeps_the_request_and_nothing_of_the_outcome() {
        let action: Map = [("ref", "p.a"), ("pack", "p"), ("runner_type", "noop")].into_iter().collect();
        let parameters: Map = [("x", 1)].into_iter().collect();
        let rule = RuleOrigin {
            rule: String::from("p.r"),
            rule_id: String::from("r1"),
            trigger: String::from("p.t"),
            trigger_type: String::from("p.t"),
            trigger_instance: String::from("i1"),
        };
        let origin = Origin { user: String::from("ann"), rule: Some(rule), ..Origin::default() };
        let at = Timestamp::from_seconds;
        let mut first = Execution::new("e1", &action, parameters.clone(), origin, at(1));
        first.end(Status::Failed, Value::from("no"), at(2));
        let retry: Map = [("retry_count", 1)].into_iter().collect();
        let next = first.again("e2", retry.clone(), Some(at(5)), at(3));
        assert_eq!((next.text("id"), next.text("status")), ("e2", "delayed"));
        assert_eq!((next.text("rule"), next.text("trigger_instance")), ("p.r", "i1"));
        assert_eq!(
            (next.map("parameters"), next.text("start_timestamp")),
            (Some(&parameters), &*at(3).to_string())
        );
        assert_eq!(next.text("delayed_until"), at(5).to_string());
        for key in ["result", "end_timestamp", "elapsed_seconds"] {
            assert!(!next.document().contains_key(key), "{key}");
        }
        let mut context = first.map("context").cloned().unwrap();
        context.insert("policies", [("retry", retry)].into_iter().collect::<Map>());
        assert_eq!(next.map("context"), Some(&context));
        let at_once = next.again("e3", Map::new(), None, at(6));
        assert_eq!(at_once.text("status"), "requested");
        assert!(!at_once.document().contains_key("delayed_until"));
    }
}
