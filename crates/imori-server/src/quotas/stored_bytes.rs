//! Stored bytes per vhost, and the vhosts that have reached their limit.
//!
//! A queue reports a change only once it is large enough, so cells rarely contend for the lock here. A publish only
//! reads the number of full vhosts from the gauge, which is almost always zero.

use std::collections::HashMap;
use std::sync::Mutex;

use arc_swap::ArcSwap;
use imori_core::id::VhostId;
use imori_core::memory::Gauge;

use crate::slots::unpoisoned;

/// Stored bytes of all vhosts.
#[derive(Debug, Default)]
pub(crate) struct StoredBytes {
    vhosts: Mutex<HashMap<VhostId, Stored>>,
    /// Full vhosts with their limits; publishes read this only if there is one.
    full: ArcSwap<HashMap<VhostId, u64>>,
}

#[derive(Debug, Default)]
struct Stored {
    bytes: i64,
    max: Option<u64>,
}

impl StoredBytes {
    /// Adds a change of a vhost's stored bytes.
    pub(crate) fn add(&self, vhost: VhostId, change: i64, gauge: &Gauge) {
        let mut vhosts = unpoisoned(self.vhosts.lock());
        let stored = vhosts.entry(vhost).or_default();
        let was_full = stored.is_full();
        stored.bytes = stored.bytes.saturating_add(change);
        let (is_full, is_nothing) = (stored.is_full(), stored.bytes == 0 && stored.max.is_none());
        if is_nothing {
            vhosts.remove(&vhost);
        }
        if is_full != was_full {
            self.tell(&vhosts, gauge);
        }
    }

    /// Sets the limits of all vhosts that have one.
    pub(crate) fn limit(&self, maxes: &HashMap<VhostId, u64>, gauge: &Gauge) {
        let mut vhosts = unpoisoned(self.vhosts.lock());
        for vhost in maxes.keys() {
            vhosts.entry(*vhost).or_default();
        }
        vhosts.iter_mut().for_each(|(vhost, stored)| stored.max = maxes.get(vhost).copied());
        vhosts.retain(|_, stored| stored.bytes > 0 || stored.max.is_some());
        self.tell(&vhosts, gauge);
    }

    /// The limit of a vhost, if it has been reached.
    pub(crate) fn reached(&self, vhost: VhostId) -> Option<u64> {
        self.full.load().get(&vhost).copied()
    }

    /// Stored bytes of a vhost.
    pub(crate) fn of(&self, vhost: VhostId) -> u64 {
        unpoisoned(self.vhosts.lock()).get(&vhost).map_or(0, Stored::bytes)
    }

    fn tell(&self, vhosts: &HashMap<VhostId, Stored>, gauge: &Gauge) {
        let full = vhosts.iter().filter(|(_, stored)| stored.is_full());
        let full: HashMap<VhostId, u64> = full.filter_map(|(vhost, of)| Some((*vhost, of.max?))).collect();
        let count = full.len();
        self.full.store(full.into());
        gauge.note_full_vhosts(count);
    }
}

impl Stored {
    /// May be negative for a moment, because queues report their changes separately.
    fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(0)
    }

    fn is_full(&self) -> bool {
        self.max.is_some_and(|max| self.bytes() >= max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY LIM-10: a vhost is full exactly while its stored bytes reach its limit.
    #[test]
    fn a_vhost_is_full_while_it_has_its_limit() {
        let (stored, gauge) = (StoredBytes::default(), Gauge::default());
        let (one, two) = (VhostId(1), VhostId(2));
        stored.add(one, 100, &gauge);
        assert_eq!((gauge.full_vhosts(), stored.of(one), stored.reached(one)), (0, 100, None));
        stored.limit(&HashMap::from([(one, 150), (two, 0)]), &gauge);
        assert_eq!((gauge.full_vhosts(), stored.reached(two)), (1, Some(0)), "nothing is allowed");
        stored.add(one, 50, &gauge);
        assert_eq!((gauge.full_vhosts(), stored.reached(one)), (2, Some(150)));
        stored.add(one, -1, &gauge);
        assert_eq!((gauge.full_vhosts(), stored.reached(one)), (1, None));
        stored.limit(&HashMap::new(), &gauge);
        stored.add(one, -149, &gauge);
        assert_eq!((gauge.full_vhosts(), stored.of(one)), (0, 0));
    }
}
