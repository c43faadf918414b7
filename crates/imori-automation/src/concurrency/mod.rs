//! StackStorm's policies `action.concurrency` and `action.concurrency.attr`: a limit of executions at a time.

mod limits;
mod policy;

pub use limits::{Admission, ConcurrencyLimits, NamedPolicy, Refusal};
pub use policy::{ConcurrencyPolicy, ConcurrencyPolicyError, Excess};
