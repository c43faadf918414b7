//! The findings of a run, as values that are written and read again.

pub(crate) mod report;
mod timeline;
pub(crate) mod series;
pub(crate) mod machine;
pub(crate) mod slow;
pub(crate) mod latency;
pub(crate) mod ledger;
pub(crate) mod levels;

pub(crate) use timeline::Timeline;
