//! Any criteria are evaluated on any payload, or refused: never a panic, and never without end.
//!
//! Input: a byte that chooses the operator, then the path, the pattern and the payload, a line each. Pattern and payload
//! are YAML, so that they may be numbers and lists.
//! Held: the explanation agrees with the evaluation, and criteria that are written are read again.

use imori_automation::criteria::Criteria;
use imori_automation::criteria::TriggerInstance;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::yaml::load;

use crate::planted::fail_if_planted;

const OPERATORS: [&str; 24] = [
    "regex",
    "iregex",
    "matchregex",
    "matchwildcard",
    "equals",
    "nequals",
    "iequals",
    "ieq",
    "contains",
    "icontains",
    "ncontains",
    "incontains",
    "startswith",
    "istartswith",
    "endswith",
    "iendswith",
    "lessthan",
    "greaterthan",
    "timediff_lt",
    "timediff_gt",
    "exists",
    "nexists",
    "inside",
    "ninside",
];

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let operator = OPERATORS[usize::from(*choice) % OPERATORS.len()];
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (path, pattern, payload) = (line(), line(), line());
    let path = if path.is_empty() { "trigger.x" } else { path };
    let value = |text: &str| load(text).unwrap_or_else(|_| Value::from(text));
    let pattern = value(pattern);
    let payload = match value(payload) {
        map @ Value::Map(_) => map,
        other => Value::Map(Map::from_iter([("x", other)])),
    };
    let criterion = Map::from_iter([("type", Value::from(operator)), ("pattern", pattern.clone())]);
    let map = Map::from_iter([(path, Value::Map(criterion))]);
    let criteria = match Criteria::compile(&map) {
        Ok(criteria) => criteria,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    planted(operator, &pattern);
    let now = Timestamp::from_seconds(1_750_000_000);
    let outcome = criteria.evaluate(&payload, now);
    let explained = criteria.explain(&TriggerInstance::new(&payload, now));
    assert_eq!(outcome.is_match, explained.is_match, "{map:?} on {payload}");
}

/// Does nothing unless a fault is planted: then a regular expression with an empty group is one too many.
fn planted(operator: &str, pattern: &Value) {
    let is_found = operator == "regex" && pattern.as_str().is_some_and(|pattern| pattern.contains("()"));
    fail_if_planted(is_found);
}
