//! A table of locked values, found by slot and generation without a lock of its own.

use std::panic::RefUnwindSafe;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Slots of a page: pages come as the table grows and are never moved or given back.
const PAGE_SLOTS: usize = 1024;

/// The place of a value, and how often the place was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Up to a fixed number of values, each behind a mutex of its own.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    pages: Box<[OnceLock<Page<T>>]>,
    free: Mutex<Free>,
}

type Page<T> = Box<[Mutex<Slot<T>>]>;

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

#[derive(Debug)]
struct Free {
    slots: Vec<u32>,
    /// Slots from here on were never used.
    next: u32,
    max: u32,
}

impl<T> RefUnwindSafe for Slots<T> {}

impl<T> Slots<T> {
    /// A table with places for `max` values.
    pub(crate) fn new(max: usize) -> Slots<T> {
        let pages = (0..max.div_ceil(PAGE_SLOTS)).map(|_| OnceLock::new()).collect();
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        Slots { pages, free: Mutex::new(Free { slots: Vec::new(), next: 0, max }) }
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        let free = unpoisoned(self.free.lock());
        free.next as usize - free.slots.len()
    }

    /// Puts in the value that `make` makes of its key; `None` where the table is full.
    pub(crate) fn insert(&self, make: impl FnOnce(SlotKey) -> T) -> Option<SlotKey> {
        let slot = {
            let mut free = unpoisoned(self.free.lock());
            match free.slots.pop() {
                Some(slot) => slot,
                None if free.next < free.max => {
                    free.next += 1;
                    free.next - 1
                }
                None => return None,
            }
        };
        let page = self.pages.get(slot as usize / PAGE_SLOTS)?.get_or_init(new_page);
        let mut place = unpoisoned(page.get(slot as usize % PAGE_SLOTS)?.lock());
        let key = SlotKey { slot, generation: place.generation };
        place.value = Some(make(key));
        Some(key)
    }

    /// Takes a value out for good.
    pub(crate) fn remove(&self, key: SlotKey) -> Option<T> {
        let value = {
            let mut place = self.lock(key.slot)?;
            if place.generation != key.generation {
                return None;
            }
            let value = place.value.take()?;
            place.generation = place.generation.wrapping_add(1);
            value
        };
        unpoisoned(self.free.lock()).slots.push(key.slot);
        Some(value)
    }

    /// Lends a value under its lock, if it is there.
    pub(crate) fn with<R>(&self, key: SlotKey, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut place = self.lock(key.slot)?;
        if place.generation != key.generation {
            return None;
        }
        place.value.as_mut().map(f)
    }

    /// The keys of all values there are.
    pub(crate) fn keys(&self) -> Vec<SlotKey> {
        let used = unpoisoned(self.free.lock()).next;
        (0..used)
            .filter_map(|slot| {
                let place = self.lock(slot)?;
                place.value.as_ref().map(|_| SlotKey { slot, generation: place.generation })
            })
            .collect()
    }

    /// Lends several values at once, locked in the order of the keys, whose slots rise.
    pub(crate) fn with_many<R>(&self, keys: &[SlotKey], f: impl FnOnce(&mut [Option<&mut T>]) -> R) -> R {
        // Of two keys of one slot the older is stale; the slot is locked once.
        let is_stale = |at: usize, slot: u32| keys.get(at + 1).is_some_and(|next| next.slot == slot);
        let lock = |(at, key): (usize, &SlotKey)| {
            (key.generation, if is_stale(at, key.slot) { None } else { self.lock(key.slot) })
        };
        let mut places: Vec<_> = keys.iter().enumerate().map(lock).collect();
        let mut values: Vec<Option<&mut T>> = places
            .iter_mut()
            .map(|(generation, place)| {
                place.as_mut().filter(|place| place.generation == *generation)?.value.as_mut()
            })
            .collect();
        f(&mut values)
    }

    fn lock(&self, slot: u32) -> Option<MutexGuard<'_, Slot<T>>> {
        let page = self.pages.get(slot as usize / PAGE_SLOTS)?.get()?;
        Some(unpoisoned(page.get(slot as usize % PAGE_SLOTS)?.lock()))
    }
}

fn new_page<T>() -> Page<T> {
    (0..PAGE_SLOTS).map(|_| Mutex::new(Slot { generation: 0, value: None })).collect()
}

/// Takes the guard of a lock also after a panic. The handler of the panic decides about the value, not the
/// lock.
pub(crate) fn unpoisoned<G>(result: Result<G, PoisonError<G>>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_key_finds_nothing() {
        let slots = Slots::new(2);
        let first = slots.insert(|_| "first").unwrap();
        assert_eq!(slots.with(first, |value| *value), Some("first"));
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert(|_| "second").unwrap();
        assert_eq!(second.slot, first.slot, "the slot is used again");
        assert_eq!(slots.with(first, |value| *value), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.with(second, |value| *value), Some("second"));
        assert_eq!(slots.len(), 1);
    }

    #[test]
    fn two_keys_of_one_slot_lock_it_once() {
        let slots = Slots::new(1);
        let stale = slots.insert(|_| 1).unwrap();
        slots.remove(stale);
        let fresh = slots.insert(|_| 2).unwrap();
        slots.with_many(&[stale, fresh], |values| {
            let found: Vec<_> = values.iter().map(|value| value.as_deref().copied()).collect();
            assert_eq!(found, [None, Some(2)]);
        });
    }

    #[test]
    fn full_table_takes_nothing_more() {
        let slots = Slots::new(2);
        let keys: Vec<_> = (0..2).map(|value| slots.insert(|_| value).unwrap()).collect();
        assert!(slots.insert(|_| 2).is_none());
        slots.with_many(&keys, |values| {
            let sum: i32 = values.iter().flatten().map(|value| **value).sum();
            assert_eq!(sum, 1);
        });
    }

    #[test]
    fn threads_share_a_table_without_losing_a_value() {
        const THREADS: usize = 4;
        const ROUNDS: usize = 2000;
        let slots = Slots::new(THREADS * 2);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let slots = &slots;
                scope.spawn(move || {
                    let mut stale = None;
                    for round in 0..ROUNDS {
                        let value = thread * ROUNDS + round;
                        let key = slots.insert(|_| value).expect("there is room for two a thread");
                        assert_eq!(slots.with(key, |found| *found), Some(value));
                        let others = slots.keys();
                        assert!(others.contains(&key));
                        slots.with_many(&others, |values| assert!(values.len() <= THREADS * 2));
                        assert_eq!(slots.remove(key), Some(value));
                        assert_eq!(slots.remove(key), None, "it is removed once");
                        assert_eq!(stale.and_then(|key| slots.remove(key)), None, "what is gone is gone");
                        stale = Some(key);
                    }
                });
            }
        });
        assert_eq!(slots.len(), 0);
    }
}
