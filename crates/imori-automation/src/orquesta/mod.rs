//! Orquesta, StackStorm's language of workflows, as a conductor: which tasks run when, with which values.

mod round;
mod workflow;
mod advance;
mod rerunning;
mod scheduling;
mod updating;
mod execution;
mod state_json;
mod state;
pub(crate) mod contexts;
pub(crate) mod statuses;

pub use crate::definitions::{Actions, Problem};
pub(crate) use round::{BegunTask, Round, TaskEnd, Unevaluated};
pub use workflow::Workflow;
