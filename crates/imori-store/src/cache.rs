//! A cache with a limit: the least recently used value is removed first.

use std::collections::BTreeMap;

/// Values by key, each with a weight, up to a limit of all weights.
#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    limit: usize,
    weight: usize,
    /// The number of the last use.
    uses: u64,
    values: BTreeMap<K, Cached<V>>,
    /// Keys by their last use.
    by_use: BTreeMap<u64, K>,
}

#[derive(Debug)]
struct Cached<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Ord + Copy, V: Clone> Cache<K, V> {
    /// An empty cache with this limit.
    pub(crate) fn new(limit: usize) -> Cache<K, V> {
        Cache { limit, weight: 0, uses: 0, values: BTreeMap::new(), by_use: BTreeMap::new() }
    }

    /// The value of a key, which counts as a use.
    pub(crate) fn get(&mut self, key: K) -> Option<V> {
        let cached = self.values.get_mut(&key)?;
        self.uses += 1;
        self.by_use.remove(&cached.used);
        cached.used = self.uses;
        self.by_use.insert(self.uses, key);
        Some(cached.value.clone())
    }

    /// Inserts a value, and returns the values it displaces. A value above the limit by itself is not inserted.
    pub(crate) fn insert(&mut self, key: K, value: V, weight: usize) -> Vec<V> {
        let mut gone: Vec<V> = self.remove(key).into_iter().collect();
        if weight > self.limit {
            return gone;
        }
        while self.weight + weight > self.limit {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some(cached) = self.values.remove(&oldest) {
                self.weight -= cached.weight;
                gone.push(cached.value);
            }
        }
        self.uses += 1;
        self.weight += weight;
        self.by_use.insert(self.uses, key);
        self.values.insert(key, Cached { value, weight, used: self.uses });
        gone
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let cached = self.values.remove(&key)?;
        self.by_use.remove(&cached.used);
        self.weight -= cached.weight;
        Some(cached.value)
    }

    /// Takes all values out whose keys are within these bounds.
    pub(crate) fn remove_all(&mut self, first: K, last: K) -> Vec<V> {
        let keys: Vec<K> = self.values.range(first..=last).map(|(key, _)| *key).collect();
        keys.into_iter().filter_map(|key| self.remove(key)).collect()
    }

    /// Takes all values out.
    pub(crate) fn clear(&mut self) -> Vec<V> {
        (self.weight, self.by_use) = (0, BTreeMap::new());
        std::mem::take(&mut self.values).into_values().map(|cached| cached.value).collect()
    }

    /// The weight of all values together.
    #[cfg(test)]
    pub(crate) fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let mut cache = Cache::new(3);
        for key in 1..=3 {
            assert!(cache.insert(key, key * 10, 1).is_empty());
        }
        assert_eq!(cache.get(1), Some(10));
        assert_eq!(cache.insert(4, 40, 1), [20]);
        assert_eq!(cache.insert(5, 50, 2), [30, 10]);
        assert_eq!((cache.get(4), cache.get(5), cache.weight()), (Some(40), Some(50), 3));
        assert_eq!(cache.insert(4, 41, 1), [40], "a later value takes the place of an earlier one");
        assert!(cache.insert(6, 60, 4).is_empty(), "it is too large, and nothing goes for it");
        assert_eq!((cache.get(6), cache.get(4)), (None, Some(41)));
        assert_eq!((cache.remove(4), cache.remove(4), cache.weight()), (Some(41), None, 2));
        assert_eq!((cache.clear(), cache.weight(), cache.get(5)), (vec![50], 0, None));
    }

    proptest! {
        #[test]
        fn the_weight_is_that_of_what_is_there_and_within_the_limit(
            steps in proptest::collection::vec((0u8..12, 0u8..4, 0usize..9), 0..200),
        ) {
            let mut cache = Cache::new(20);
            let mut weights = BTreeMap::new();
            for (key, step, weight) in steps {
                match step {
                    0 => drop(cache.remove(key)),
                    1 => drop(cache.remove_all(key, key.saturating_add(2))),
                    2 => prop_assert!(cache.get(key).is_none_or(|found| found == key)),
                    _ => {
                        cache.insert(key, key, weight);
                        weights.insert(key, weight);
                    }
                }
                let there = (0..12).filter(|key| cache.values.contains_key(key));
                let sum: usize = there.map(|key| weights[&key]).sum();
                prop_assert_eq!(cache.weight(), sum);
                prop_assert!(sum <= 20);
                prop_assert_eq!(cache.by_use.len(), cache.values.len());
            }
        }
    }
}
