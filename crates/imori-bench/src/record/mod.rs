//! The results of a run, as values that are written to JSON and read back.

pub mod report;
mod timeline;
pub(crate) mod heat;
pub mod series;
pub mod machine;
pub(crate) mod slow;
pub mod latency;
pub(crate) mod ledger;
pub mod levels;

pub(crate) use timeline::Timeline;
