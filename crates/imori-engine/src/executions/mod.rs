//! Executions: the request to run an action, and its outcome.

mod run_queue;
mod active;
mod run;
mod execution;
mod status;

pub(crate) use active::{Active, Workflows};
pub(crate) use execution::{Execution, Origin, RuleOrigin};
pub(crate) use run::Run;
pub(crate) use run_queue::{Canceling, RunQueue};
pub(crate) use status::Status;
