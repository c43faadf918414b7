//! A scenario as a whole: checked, and run as often as it takes.

use anyhow::Result;

use crate::options::Rate;
use crate::record::report::Report;
use crate::scenario::find;
use crate::scenario::watched::{Measurable, once};

/// Runs a scenario, or searches the highest rate at which it keeps its objectives.
pub(crate) fn measure<M: Measurable>(options: &M) -> Result<Report> {
    options.check()?;
    match options.clone().load().rate {
        Some(Rate::Find) => find::search(options),
        _ => once(options),
    }
}
