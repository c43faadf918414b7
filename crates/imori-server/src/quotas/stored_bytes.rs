//! How many bytes the messages of each vhost have, and which vhosts have as many as they may.
//!
//! A queue tells of a change once it is large enough, under its lock, so that cells seldom meet here. A publish looks at
//! the number of full vhosts in the gauge alone, which nearly always is none.

use std::collections::HashMap;
use std::sync::Mutex;

use arc_swap::ArcSwap;
use imori_core::id::VhostId;
use imori_core::memory::Gauge;

use crate::slots::unpoisoned;

/// The bytes of all vhosts.
#[derive(Debug, Default)]
pub(crate) struct StoredBytes {
    vhosts: Mutex<HashMap<VhostId, Stored>>,
    /// The vhosts that are full, with their limits: what publishes look at while there is any.
    full: ArcSwap<HashMap<VhostId, u64>>,
}

#[derive(Debug, Default)]
struct Stored {
    bytes: i64,
    max: Option<u64>,
}

impl StoredBytes {
    /// Takes note that the messages of a vhost have so many bytes more, or fewer.
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

    /// Sets how many bytes messages may have, of each vhost with a limit.
    pub(crate) fn limit(&self, maxes: &HashMap<VhostId, u64>, gauge: &Gauge) {
        let mut vhosts = unpoisoned(self.vhosts.lock());
        for vhost in maxes.keys() {
            vhosts.entry(*vhost).or_default();
        }
        vhosts.iter_mut().for_each(|(vhost, stored)| stored.max = maxes.get(vhost).copied());
        vhosts.retain(|_, stored| stored.bytes > 0 || stored.max.is_some());
        self.tell(&vhosts, gauge);
    }

    /// How many bytes the messages of a vhost may have, if they have as many.
    pub(crate) fn reached(&self, vhost: VhostId) -> Option<u64> {
        self.full.load().get(&vhost).copied()
    }

    /// How many bytes the messages of a vhost have.
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
    /// Queues tell of their changes one after the other: a moment long there may be fewer than none.
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

    /// SECURITY LIM-10: a vhost is full exactly as long as its messages have the bytes that they may have.
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
