//! Executions: the request to run an action, and its outcome.

mod run_queue;
mod active;
mod run;
pub(crate) mod execution;
pub(crate) mod status;

pub(crate) use active::{Active, Workflows};
pub(crate) use execution::{Execution, Origin, RuleOrigin};
pub(crate) use run::Run;
pub(crate) use run_queue::{Canceling, RunQueue};
pub(crate) use status::Status;
