//! Criteria of rules: operators over values of a payload, as StackStorm evaluates them.

mod criteria;
mod explanation;
mod criterion;
mod operator;
mod pattern;
mod instance;
mod path;
mod wildcard;
mod expression;
mod translation;
mod class;
pub(crate) mod date;
mod loose_date;
mod iso_date;
mod comparison;
mod outcome;

pub use criteria::Criteria;
pub use explanation::{ExplainedCriterion, Explanation, Verdict};
pub use instance::TriggerInstance;
pub use operator::Operator;
pub use outcome::{CriteriaError, Failure, Outcome};
pub use path::Path;
