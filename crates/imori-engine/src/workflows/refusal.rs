//! Why a workflow does not start.

use imori_automation::orquesta::Problem;
use imori_automation::value::{Map, Value};

/// Why a workflow does not start, as the result of its execution, in the form that its runner has in StackStorm.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal(Map);

impl Refusal {
    /// A refusal of a runner for one reason.
    pub(super) fn new(runner: &str, reason: &str) -> Refusal {
        let one = |key: &str| -> Map { [(key, reason)].into_iter().collect() };
        match runner {
            "orquesta" => Refusal::of_errors(vec![Value::Map(one("message"))]),
            _ => Refusal(one("error")),
        }
    }

    /// The refusal of a workflow of orquesta that has these errors.
    pub(super) fn of_problems(problems: &[Problem]) -> Refusal {
        Refusal::of_errors(problems.iter().map(|problem| problem.to_value()).collect())
    }

    fn of_errors(errors: Vec<Value>) -> Refusal {
        let mut result = Map::new();
        result.insert("output", Value::Null);
        result.insert("errors", errors);
        Refusal(result)
    }

    /// The result of the execution.
    pub(crate) fn into_result(self) -> Value {
        Value::Map(self.0)
    }
}
