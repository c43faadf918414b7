//! A table of locked values, indexed by slot and generation without a lock of its own.

use std::panic::RefUnwindSafe;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Default number of slots per page. Pages are allocated as the table grows, and never moved or freed.
const PAGE_SLOTS: usize = 1024;

/// Pages in the first level. Later pages need one more step, and their index is allocated only when needed.
const FIRST_PAGES: usize = 1024;

/// The slot of a value, and how often that slot was used before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SlotKey {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A bounded number of values, each behind its own mutex. The first value allocates a page.
#[derive(Debug)]
pub(crate) struct Slots<T, const PAGE: usize = PAGE_SLOTS> {
    pages: Pages<T, PAGE>,
    later_pages: OnceLock<Pages<T, PAGE>>,
    free: Mutex<Free>,
}

type Pages<T, const PAGE: usize> = Box<[OnceLock<Page<T, PAGE>>]>;

type Page<T, const PAGE: usize> = Box<[Mutex<Slot<T>>; PAGE]>;

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

impl<T, const PAGE: usize> RefUnwindSafe for Slots<T, PAGE> {}

impl<T, const PAGE: usize> Slots<T, PAGE> {
    /// A table for up to `max` values.
    pub(crate) fn new(max: usize) -> Slots<T, PAGE> {
        let pages = new_pages(max.div_ceil(PAGE).min(FIRST_PAGES));
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        Slots {
            pages,
            later_pages: OnceLock::new(),
            free: Mutex::new(Free { slots: Vec::new(), next: 0, max }),
        }
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        let free = unpoisoned(self.free.lock());
        free.next as usize - free.slots.len()
    }

    /// Inserts the value that `make` returns for its key; `None` if the table is full.
    pub(crate) fn insert(&self, make: impl FnOnce(SlotKey) -> T) -> Option<SlotKey> {
        let (slot, max) = {
            let mut free = unpoisoned(self.free.lock());
            let slot = match free.slots.pop() {
                Some(slot) => slot,
                None if free.next < free.max => {
                    free.next += 1;
                    free.next - 1
                }
                None => return None,
            };
            (slot, free.max as usize)
        };
        let at = slot as usize / PAGE;
        if at >= self.pages.len() {
            self.later_pages.get_or_init(|| new_pages(max.div_ceil(PAGE) - self.pages.len()));
        }
        let page = self.page(at)?.get_or_init(new_page);
        let mut place = unpoisoned(page.get(slot as usize % PAGE)?.lock());
        let key = SlotKey { slot, generation: place.generation };
        place.value = Some(make(key));
        Some(key)
    }

    /// Removes a value.
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

    /// Runs `f` on a value under its lock; `None` if it is gone.
    pub(crate) fn with<R>(&self, key: SlotKey, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        let mut place = self.lock(key.slot)?;
        if place.generation != key.generation {
            return None;
        }
        place.value.as_mut().map(f)
    }

    /// The keys of all values.
    pub(crate) fn keys(&self) -> Vec<SlotKey> {
        let used = unpoisoned(self.free.lock()).next;
        (0..used)
            .filter_map(|slot| {
                let place = self.lock(slot)?;
                place.value.as_ref().map(|_| SlotKey { slot, generation: place.generation })
            })
            .collect()
    }

    /// Runs `f` on several values, locked in the order of `keys`, which must be sorted by slot.
    pub(crate) fn with_many<R>(&self, keys: &[SlotKey], f: impl FnOnce(&mut [Option<&mut T>]) -> R) -> R {
        // Of two keys with one slot the earlier is stale; the slot is locked once.
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

    #[inline]
    fn page(&self, at: usize) -> Option<&OnceLock<Page<T, PAGE>>> {
        match self.pages.get(at) {
            Some(page) => Some(page),
            None => self.later_page(at),
        }
    }

    #[cold]
    fn later_page(&self, at: usize) -> Option<&OnceLock<Page<T, PAGE>>> {
        self.later_pages.get()?.get(at - self.pages.len())
    }

    fn lock(&self, slot: u32) -> Option<MutexGuard<'_, Slot<T>>> {
        let page = self.page(slot as usize / PAGE)?.get()?;
        Some(unpoisoned(page.get(slot as usize % PAGE)?.lock()))
    }
}

fn new_pages<T, const PAGE: usize>(count: usize) -> Pages<T, PAGE> {
    (0..count).map(|_| OnceLock::new()).collect()
}

fn new_page<T, const PAGE: usize>() -> Page<T, PAGE> {
    let slots: Box<[_]> = (0..PAGE).map(|_| Mutex::new(Slot { generation: 0, value: None })).collect();
    slots.try_into().unwrap_or_else(|_| unreachable!("it has as many slots as a page"))
}

/// Takes a lock even if a thread panicked with it. The panic's handler decides what happens to the value.
pub(crate) fn unpoisoned<G>(result: Result<G, PoisonError<G>>) -> G {
    result.unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_key_finds_nothing() {
        let slots = Slots::<_>::new(2);
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
        let slots = Slots::<_>::new(1);
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
        let slots = Slots::<_>::new(2);
        let keys: Vec<_> = (0..2).map(|value| slots.insert(|_| value).unwrap()).collect();
        assert!(slots.insert(|_| 2).is_none());
        slots.with_many(&keys, |values| {
            let sum: i32 = values.iter().flatten().map(|value| **value).sum();
            assert_eq!(sum, 1);
        });
    }

    #[test]
    fn values_behind_the_first_pages_are_found_too() {
        let slots = Slots::<_, 2>::new(2 * FIRST_PAGES + 3);
        let absent = SlotKey { slot: 2 * FIRST_PAGES as u32, generation: 0 };
        assert_eq!(slots.with(absent, |value: &mut usize| *value), None, "no value came so far");
        let keys: Vec<_> = (0..2 * FIRST_PAGES + 3).map(|value| slots.insert(|_| value).unwrap()).collect();
        assert!(slots.insert(|_| 0).is_none(), "it is full");
        for (value, key) in keys.iter().enumerate() {
            assert_eq!(slots.with(*key, |value| *value), Some(value));
        }
        assert_eq!(slots.keys(), keys);
        let last = keys.last().unwrap();
        assert_eq!(slots.remove(*last), Some(2 * FIRST_PAGES + 2));
        assert_eq!(slots.with(*last, |value| *value), None);
    }

    #[test]
    fn threads_share_a_table_without_losing_a_value() {
        const THREADS: usize = 4;
        const ROUNDS: usize = 2000;
        let slots = Slots::<_, 4>::new(THREADS * 2);
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
