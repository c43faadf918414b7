//! The results of a run, as values that are written to JSON and read back.

pub(crate) mod report;
mod timeline;
pub(crate) mod heat;
pub(crate) mod series;
pub(crate) mod machine;
pub(crate) mod slow;
pub(crate) mod latency;
pub(crate) mod ledger;
pub(crate) mod levels;

pub(crate) use timeline::Timeline;
