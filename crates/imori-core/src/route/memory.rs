//! Routes that were found lately, in sets of two places.
//!
//! An address can take two places; a new one takes that which was used less lately. A route holds for
//! one version of the table.

use std::mem;
use std::sync::Arc;

use super::target::Route;
use crate::id::VhostId;
use crate::limits::{ROUTE_CACHE_ENTRIES_MAX, ROUTE_CACHE_TARGETS_MAX};
use crate::name::Name;

/// Sets of two places that a memory begins with.
const SETS_MIN: usize = 16;
const SETS_MAX: usize = ROUTE_CACHE_ENTRIES_MAX / 2;

/// Routes by what they are remembered for.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Empty until the first route; its length is a power of two.
    sets: Vec<Set>,
    /// Targets in all remembered routes.
    targets: usize,
}

/// The key under which a route is remembered: an address, or one without its last token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) hash: u64,
    pub(super) vhost: VhostId,
    pub(super) exchange: &'a [u8],
    pub(super) subject: &'a [u8],
}

/// A place that was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    set: usize,
    place: usize,
}

/// A route and what it is remembered for.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) hash: u64,
    pub(super) version: u64,
    pub(super) vhost: VhostId,
    // Here to be compared without going to the route.
    pub(super) exchange: Name,
    pub(super) subject: Name,
    pub(super) route: Arc<Route>,
}

/// Two places, one of which a route can take.
#[derive(Debug, Default)]
struct Set {
    places: [Option<Entry>; 2],
    /// The place that was used last.
    recent: usize,
}

impl Memory {
    /// Where the route of a key is, of whatever version.
    #[inline(always)]
    pub(super) fn find(&self, key: &Key<'_>) -> Option<Place> {
        let set = self.index(key.hash);
        let place = self.sets.get(set)?.find(key)?;
        Some(Place { set, place })
    }

    /// Whether what is there holds for this version of the table.
    #[inline]
    pub(super) fn is_current(&self, at: Place, version: u64) -> bool {
        self.sets[at.set].places[at.place].as_ref().is_some_and(|entry| entry.version == version)
    }

    /// Lends a route that was found, which is its use.
    #[inline]
    pub(super) fn route(&mut self, at: Place) -> &Arc<Route> {
        let set = &mut self.sets[at.set];
        set.recent = at.place;
        &set.places[at.place].as_ref().expect("it was found there").route
    }

    /// Takes out a route that was found.
    pub(super) fn forget(&mut self, at: Place) -> Option<Entry> {
        let entry = self.sets[at.set].places[at.place].take()?;
        self.targets -= entry.route.target_count();
        Some(entry)
    }

    /// Takes in a route that is not there.
    pub(super) fn remember(&mut self, entry: Entry) -> &Arc<Route> {
        if self.targets + entry.route.target_count() > ROUTE_CACHE_TARGETS_MAX {
            *self = Memory::default();
        }
        if self.sets.is_empty() {
            self.sets.resize_with(SETS_MIN, Set::default);
        }
        let set = self.index(entry.hash);
        // Places that hold routes of an older table are as good as free.
        let is_full = (0..2).all(|place| self.is_current(Place { set, place }, entry.version));
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

    /// Doubles the sets: the routes in use do not fit beside each other.
    fn grow(&mut self) {
        let len = self.sets.len() * 2;
        let old = mem::take(&mut self.sets);
        self.sets.resize_with(len, Set::default);
        self.targets = 0;
        for mut set in old {
            // The one used last comes last, and so is again the one used last.
            set.places.rotate_left((set.recent + 1) % 2);
            for entry in set.places.into_iter().flatten() {
                self.put(entry);
            }
        }
    }

    /// Puts an entry into a free place of its set, or else into that used less lately.
    fn put(&mut self, entry: Entry) -> &Arc<Route> {
        let set = self.index(entry.hash);
        self.targets += entry.route.target_count();
        let recent = self.sets[set].recent;
        let place = self.sets[set].places.iter().position(Option::is_none).unwrap_or(1 - recent);
        self.forget(Place { set, place });
        let set = &mut self.sets[set];
        set.recent = place;
        &set.places[place].insert(entry).route
    }

    /// How many routes it holds, and how many targets they have.
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

/// Comparing no bytes takes 20 ns where an empty slice points nowhere and the C library reads it
/// with a mask, and the default exchange's name is empty.
fn is_equal(name: &Name, bytes: &[u8]) -> bool {
    let name = name.as_bytes();
    name.len() == bytes.len() && (name.is_empty() || name == bytes)
}
