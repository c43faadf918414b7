//! Rules: which actions a trigger instance runs.

mod rule_set;
mod index;
mod state;
mod rule;
mod extension;
mod error;
mod period;

pub use error::RuleError;
pub use extension::{ActionCall, Extension, Window};
pub use rule::{Rule, RuleExplanation, RuleKind, RuleTrigger};
pub use rule_set::{Matches, RuleSet};
pub use state::{Decision, RuleState};
