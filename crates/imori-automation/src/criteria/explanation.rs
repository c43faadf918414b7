//! The verdict of each criterion, for `rule test`.

use super::criterion::Criterion;
use super::instance::TriggerInstance;
use crate::value::{Map, Value};

/// The verdicts of a rule's criteria on a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// Whether all hold. Criteria never hold on an empty payload.
    pub is_match: bool,
    /// Each criterion, in the order in which they are written.
    pub criteria: Vec<ExplainedCriterion>,
}

/// The verdict of one criterion on a payload.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainedCriterion {
    /// Its key.
    pub key: String,
    /// The long name of its operator.
    pub operator: &'static str,
    /// Its pattern, rendered; as it is written if that fails.
    pub pattern: Value,
    /// The value of the payload at its path; `Null` if there is none.
    pub value: Value,
    /// What it gives.
    pub verdict: Verdict,
}

/// What a criterion gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It holds. A reason tells of an item of a search that failed.
    Match(Option<String>),
    /// It does not hold.
    NoMatch,
    /// It failed, for this reason.
    Failed(String),
}

impl Verdict {
    /// Whether the criterion holds.
    pub fn is_match(&self) -> bool {
        matches!(self, Verdict::Match(_))
    }
}

impl Explanation {
    /// The explanation as a value: `match`, and for each of `criteria` its `key`, `operator`, `pattern`, `value`,
    /// `match`, and `error` where it failed.
    pub fn to_value(&self) -> Value {
        let criteria: Vec<Value> = self.criteria.iter().map(ExplainedCriterion::to_value).collect();
        Value::Map(Map::from_iter([
            ("match", Value::Bool(self.is_match)),
            ("criteria", Value::List(criteria)),
        ]))
    }
}

impl ExplainedCriterion {
    fn to_value(&self) -> Value {
        let mut map = Map::from_iter([
            ("key", Value::from(self.key.as_str())),
            ("operator", Value::from(self.operator)),
            ("pattern", self.pattern.clone()),
            ("value", self.value.clone()),
            ("match", Value::Bool(self.verdict.is_match())),
        ]);
        if let Verdict::Match(Some(reason)) | Verdict::Failed(reason) = &self.verdict {
            map.insert("error", reason.as_str());
        }
        Value::Map(map)
    }
}

/// Evaluates a criterion and keeps what it saw.
pub(super) fn explain(criterion: &Criterion, instance: &TriggerInstance<'_>) -> ExplainedCriterion {
    let pattern = criterion.pattern.render(instance);
    let value = criterion.value(instance);
    let mut failure = None;
    let verdict = match (&pattern, &value) {
        (Ok(pattern), Ok(value)) => criterion.compare(value, pattern, instance, &mut failure),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    };
    let failure = failure.map(|failure| failure.to_string());
    ExplainedCriterion {
        key: criterion.key.clone(),
        operator: criterion.operator.name(),
        pattern: pattern.map_or_else(|_| criterion.pattern.source(), std::borrow::Cow::into_owned),
        value: value.map_or(Value::Null, std::borrow::Cow::into_owned),
        verdict: match (verdict, failure) {
            (Ok(true), reason) => Verdict::Match(reason),
            (Ok(false), None) => Verdict::NoMatch,
            (Ok(false), Some(reason)) | (Err(reason), _) => Verdict::Failed(reason),
        },
    }
}
