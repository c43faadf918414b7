//! Scenarios: each opens connections, drives them through its phases and reports.

mod measure;
mod find;
mod soak;
mod idle;
mod pubsub;
mod queue;
mod fill_drain;
mod oneway;
mod oneway_role;
mod shape;
mod rpc;
mod rpc_run;
mod rpc_role;
mod watched;
mod summary;
mod objectives;
mod stage;
#[cfg(test)]
mod flash_card;

pub(crate) use idle::run as run_idle;
pub(crate) use measure::measure;
