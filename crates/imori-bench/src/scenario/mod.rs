//! Scenarios: each opens connections, drives them through its phases, and builds the report.

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

use anyhow::Result;

use crate::options::Rate;
use crate::record::report::Report;
use crate::scenario::watched::{Measurable, once};

/// Runs a scenario, or searches for the highest rate at which it keeps its objectives.
pub(crate) fn measure<M: Measurable>(options: &M) -> Result<Report> {
    options.check()?;
    match options.clone().load().rate {
        Some(Rate::Find) => find::search(options),
        _ => once(options),
    }
}
