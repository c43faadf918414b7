//! Requests to the API of streams, by vhost.

use std::collections::HashMap;
use std::sync::Mutex;

use imori_core::id::VhostId;
use imori_core::world::StreamRequests;

use crate::slots::unpoisoned;

/// Counts of requests to the API of streams since the start.
#[derive(Debug, Default)]
pub(crate) struct StreamRequestCounts(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    by_vhost: HashMap<VhostId, StreamRequests>,
    /// All requests, also of vhosts that were deleted.
    all: StreamRequests,
}

impl StreamRequestCounts {
    /// Counts a request.
    pub(crate) fn count(&self, vhost: VhostId, is_error: bool) {
        let mut counted = unpoisoned(self.0.lock());
        let Counted { by_vhost, all } = &mut *counted;
        for requests in [by_vhost.entry(vhost).or_default(), all] {
            requests.total += 1;
            requests.errors += u64::from(is_error);
        }
    }

    /// The requests of a vhost.
    pub(crate) fn of(&self, vhost: VhostId) -> StreamRequests {
        unpoisoned(self.0.lock()).by_vhost.get(&vhost).copied().unwrap_or_default()
    }

    /// The requests of all vhosts.
    pub(crate) fn all(&self) -> StreamRequests {
        unpoisoned(self.0.lock()).all
    }

    /// Forgets a vhost that was deleted.
    pub(crate) fn forget(&self, vhost: VhostId) {
        unpoisoned(self.0.lock()).by_vhost.remove(&vhost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_deleted_vhost_stay_in_the_sum() {
        let counts = StreamRequestCounts::default();
        for (vhost, is_error) in [(1, false), (1, true), (2, false)] {
            counts.count(VhostId(vhost), is_error);
        }
        assert_eq!(counts.of(VhostId(1)), StreamRequests { total: 2, errors: 1 });
        counts.forget(VhostId(1));
        assert_eq!(counts.of(VhostId(1)), StreamRequests::default());
        assert_eq!(counts.all(), StreamRequests { total: 3, errors: 1 });
    }
}
