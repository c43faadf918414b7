//! Counts logins by protocol and outcome.

use std::sync::atomic::{AtomicU64, Ordering};

use imori_core::login::Verdict;

use crate::config::Spoken;

/// One kind per messaging protocol, and one for HTTP.
const KINDS: usize = Spoken::ALL.len() + 1;

/// Outcomes of logins.
pub const OUTCOMES: [&str; 3] = ["granted", "refused", "busy"];

/// Counters of logins.
#[derive(Debug, Default)]
pub(crate) struct LoginCounts([[AtomicU64; OUTCOMES.len()]; KINDS]);

impl LoginCounts {
    /// Counts a login; `protocol` is `None` for HTTP.
    pub(crate) fn count(&self, protocol: Option<Spoken>, verdict: &Verdict) {
        let kind = protocol.map_or(KINDS - 1, |protocol| protocol as usize);
        let outcome = match verdict {
            Verdict::Granted(_) => 0,
            Verdict::Refused => 1,
            Verdict::Busy => 2,
        };
        if let Some(count) = self.0.get(kind).and_then(|of_kind| of_kind.get(outcome)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts per protocol, with `None` for HTTP, in the order of [`OUTCOMES`].
    pub(crate) fn each(&self) -> impl Iterator<Item = (Option<Spoken>, [u64; OUTCOMES.len()])> {
        let kinds = Spoken::ALL.into_iter().map(Some).chain([None]);
        kinds.zip(&self.0).map(|(kind, counts)| {
            let mut loaded = [0; OUTCOMES.len()];
            loaded.iter_mut().zip(counts).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
            (kind, loaded)
        })
    }
}
