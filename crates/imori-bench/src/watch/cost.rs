//! What a phase cost.

use std::time::Duration;

use crate::watch::process::Usage;

/// What a phase cost, seen from outside of the broker and of ourselves.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Cost {
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// The broker at its start.
    pub(crate) broker_before: Usage,
    /// The broker at its end.
    pub(crate) broker_after: Usage,
    /// Highest resident memory of the broker that was seen.
    pub(crate) broker_rss_peak: u64,
    /// This process at its start.
    pub(crate) client_before: Usage,
    /// This process at its end.
    pub(crate) client_after: Usage,
}
