//! The criteria of a rule.

use super::criterion::{Budget, Criterion};
use super::explanation::{Explanation, explain};
use super::instance::TriggerInstance;
use super::outcome::{CriteriaError, Outcome};
use super::path::Path;
use crate::times::Timestamp;
use crate::value::{Map, Value};

/// Compiled criteria: all of them have to hold.
#[derive(Debug, Clone)]
pub struct Criteria {
    criteria: Vec<Criterion>,
    /// The positions of the criteria in the order of their evaluation: those that cannot fail come first, so that a
    /// rule on other payloads does not fail on this one, with or without an index.
    sequence: Vec<usize>,
}

impl Criteria {
    /// Compiles criteria: an object of keys, each with a `type` and a `pattern`. An empty one holds for every payload.
    ///
    /// # Errors
    /// An operator is unknown, a path, a regular expression or a template cannot be compiled, or a limit is exceeded.
    pub fn compile(criteria: &Map) -> Result<Criteria, CriteriaError> {
        let criteria = Criterion::compile_all(criteria, TriggerInstance::PAYLOAD, 0, &mut Budget::default())?;
        let (mut sequence, others): (Vec<usize>, Vec<usize>) =
            (0..criteria.len()).partition(|at| criteria.get(*at).is_some_and(|one| one.equality().is_some()));
        sequence.extend(others);
        Ok(Criteria { criteria, sequence })
    }

    /// Compiles criteria that are written in YAML or JSON.
    ///
    /// # Errors
    /// The text is no object, or as of [`Criteria::compile`].
    pub fn parse(text: &str) -> Result<Criteria, CriteriaError> {
        let value = crate::yaml::load(text).map_err(|error| CriteriaError::new(&[], error.to_string()))?;
        let map =
            value.as_map().ok_or_else(|| CriteriaError::new(&[], "the criteria are no object; write one"))?;
        Criteria::compile(map)
    }

    /// Evaluates the criteria on a payload, with the time for `timediff_lt` and `timediff_gt`.
    pub fn evaluate(&self, payload: &Value, now: Timestamp) -> Outcome {
        self.evaluate_instance(&TriggerInstance::new(payload, now))
    }

    /// Evaluates the criteria; the first that does not hold ends it. Criteria never hold on an empty payload.
    pub fn evaluate_instance(&self, instance: &TriggerInstance<'_>) -> Outcome {
        let mut failure = None;
        let is_match = self.suits(instance)
            && self
                .sequence
                .iter()
                .filter_map(|at| self.criteria.get(*at))
                .all(|criterion| criterion.holds(instance, &mut failure));
        Outcome { is_match, failure }
    }

    /// Evaluates all criteria in the order in which they are written, and tells what each gives.
    pub fn explain(&self, instance: &TriggerInstance<'_>) -> Explanation {
        let criteria: Vec<_> = self.criteria.iter().map(|criterion| explain(criterion, instance)).collect();
        let is_match = self.suits(instance) && criteria.iter().all(|criterion| criterion.verdict.is_match());
        Explanation { is_match, criteria }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.criteria.is_empty()
    }

    /// The paths that have to be equal to a value which no payload changes.
    pub fn equalities(&self) -> impl Iterator<Item = (&Path, &Value)> {
        self.criteria.iter().filter_map(Criterion::equality)
    }

    fn suits(&self, instance: &TriggerInstance<'_>) -> bool {
        self.criteria.is_empty() || instance.payload().is_truthy()
    }
}
