//! A two-way set-associative cache of routes.
//!
//! An address maps to one set of two places; a new entry replaces the less recently used one. An
//! entry is valid for one version of the table.

use std::mem;
use std::sync::Arc;

use super::target::Route;
use crate::id::VhostId;
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_TARGETS_MAX};
use crate::name::Name;

/// The number of sets that a cache starts with.
const SETS_MIN: usize = 16;
const SETS_MAX: usize = ROUTE_CACHE_ENTRIES_MAX / 2;

/// A cache of routes by [`Key`].
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Empty until the first route; the length is a power of two.
    sets: Vec<Set>,
    /// The number of targets in all cached routes.
    targets: usize,
}

/// The key of a cached route: an address, or its stem, which lacks the last token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) hash: u64,
    pub(super) vhost: VhostId,
    pub(super) exchange: &'a [u8],
    pub(super) subject: &'a [u8],
}

/// The position of a cached entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachePosition {
    set: usize,
    place: usize,
}

/// A cached route and its key.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) version: u64,
    pub(super) vhost: VhostId,
    // Copied out of the route, so that comparing keys need not dereference it.
    pub(super) exchange: Name,
    pub(super) subject: Name,
    pub(super) route: Arc<Route>,
}

/// A set of two places.
#[derive(Debug, Default)]
struct Set {
    places: [Option<Entry>; 2],
    /// The place used last.
    recent: usize,
}

impl Memory {
    /// Finds the entry of a key, even if it is of an older version.
    #[inline(always)]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<CachePosition> {
        let set = self.index(key.hash);
        let place = self.sets.get(set)?.find(key)?;
        Some(CachePosition { set, place })
    }

    /// Whether the entry is valid for this version of the table.
    #[inline]
    pub(super) fn is_current(&self, at: CachePosition, version: u64) -> bool {
        self.sets[at.set].places[at.place].as_ref().is_some_and(|entry| entry.version == version)
    }

    /// Returns a cached route and marks it as used.
    #[inline]
    pub(super) fn route(&mut self, at: CachePosition) -> &Arc<Route> {
        let set = &mut self.sets[at.set];
        set.recent = at.place;
        &set.places[at.place].as_ref().expect("it was found there").route
    }

    /// Removes a cached entry.
    pub(super) fn forget(&mut self, at: CachePosition) -> Option<Entry> {
        let entry = self.sets[at.set].places[at.place].take()?;
        self.targets -= entry.route.target_count();
        Some(entry)
    }

    /// Caches a route that is not cached yet.
    pub(super) fn remember(&mut self, entry: Entry) -> &Arc<Route> {
        if self.targets + entry.route.target_count() > ROUTE_CACHE_TARGETS_MAX {
            *self = Memory::default();
        }
        if self.sets.is_empty() {
            self.sets.resize_with(SETS_MIN, Set::default);
        }
        let set = self.index(entry.hash);
        // Entries of an older version count as free.
        let is_full = (0..2).all(|place| self.is_current(CachePosition { set, place }, entry.version));
        if self.sets.len() < SETS_MAX && is_full {
            self.grow();
        }
        self.put(entry)
    }

    #[inline]
    fn index(&self, hash: u64) -> usize {
        // The mask keeps the index below the length, so cutting the hash loses nothing.
        hash as usize & self.sets.len().wrapping_sub(1)
    }

    /// Doubles the number of sets, because routes in use evict each other.
    fn grow(&mut self) {
        let len = self.sets.len() * 2;
        let old = mem::take(&mut self.sets);
        self.sets.resize_with(len, Set::default);
        self.targets = 0;
        for mut set in old {
            // Reinsert the most recently used entry last, so that it stays so.
            set.places.rotate_left((set.recent + 1) % 2);
            for entry in set.places.into_iter().flatten() {
                self.put(entry);
            }
        }
    }

    /// Puts an entry into a free place of its set, or else replaces the less recently used one.
    fn put(&mut self, entry: Entry) -> &Arc<Route> {
        let set = self.index(entry.hash);
        self.targets += entry.route.target_count();
        let recent = self.sets[set].recent;
        let place = self.sets[set].places.iter().position(Option::is_none).unwrap_or(1 - recent);
        self.forget(CachePosition { set, place });
        let set = &mut self.sets[set];
        set.recent = place;
        &set.places[place].insert(entry).route
    }

    /// The number of cached routes and of their targets.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.sets.iter().flat_map(|set| &set.places).flatten().count(), self.targets)
    }
}

impl Set {
    #[inline(always)]
    fn find(&self, key: &Key<'_>) -> Option<usize> {
        self.places.iter().position(|place| {
            place.as_ref().is_some_and(|entry| {
                entry.hash == key.hash
                    && entry.vhost == key.vhost
                    && is_equal(&entry.subject, key.subject)
                    && is_equal(&entry.exchange, key.exchange)
            })
        })
    }
}

/// Compares names, and skips the comparison of empty ones: `memcmp` of no bytes took 20 ns, because
/// an empty slice's dangling pointer is read with a mask. The default exchange's name is empty.
fn is_equal(name: &Name, bytes: &[u8]) -> bool {
    let name = name.as_bytes();
    name.len() == bytes.len() && (name.is_empty() || name == bytes)
}
