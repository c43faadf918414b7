//! A persistent hash map: `clone` copies one pointer, and a change copies only the path to it.
//!
//! A node has no spare slots, and is changed in place while it is not shared, so that building a
//! map is cheap. The hash is keyed by a [`Seed`] because clients choose the keys. The same seed and
//! the same operations give the same order of iteration.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::slice;
use std::sync::Arc;

/// Bits of the hash that choose a slot on each level. A change copies a node on each level and
/// clones every slot in it, so wider nodes cost more than they save.
const LEVEL_BITS: u32 = 4;
const SLOT_MASK: u64 = (1 << LEVEL_BITS) - 1;
/// Levels fed by 64 bits of hash; keys that still collide below share a list.
const LEVELS: u32 = u64::BITS.div_ceil(LEVEL_BITS);

/// The secret that keys the hash, so that a client cannot choose names that collide.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// Hashes `key` under this seed.
    pub fn hash<Q: Hash + ?Sized>(self, key: &Q) -> u64 {
        // The standard hasher has fixed keys; the seed, written first, is the secret part.
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

/// A persistent map from `K` to `V`. Every call must pass the same seed.
#[derive(Clone)]
pub struct Hamt<K, V> {
    root: Node<K, V>,
}

impl<K, V> Default for Hamt<K, V> {
    fn default() -> Hamt<K, V> {
        Hamt { root: Node::empty() }
    }
}

impl<K, V> Hamt<K, V> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.root.count as usize
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.root.count == 0
    }

    /// Iterates over all entries in the order of their hashes.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter { levels: vec![self.root.slots().iter()], list: [].iter() }
    }
}

impl<K: Hash + Eq, V> Hamt<K, V> {
    /// The value of `key`.
    pub fn get<Q>(&self, seed: Seed, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if self.is_empty() {
            return None;
        }
        self.get_hashed(seed.hash(key), key)
    }

    /// The value of `key`, with the hash that [`Seed::hash`] gave the caller.
    pub fn get_hashed<Q>(&self, hash: u64, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.entry_hashed(hash, key).map(|(_, value)| value)
    }

    /// The stored key equal to `key`, and its value.
    pub fn entry<Q>(&self, seed: Seed, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if self.is_empty() {
            return None;
        }
        self.entry_hashed(seed.hash(key), key)
    }

    fn entry_hashed<Q>(&self, hash: u64, key: &Q) -> Option<(&K, &V)>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut node = &self.root;
        let mut hash = hash;
        loop {
            match node.slot(hash)? {
                Slot::Entry(found, value) => return (found.borrow() == key).then_some((found, value)),
                Slot::Node(child) => node = child,
                Slot::List(list) => {
                    let entry = list.iter().find(|(found, _)| found.borrow() == key);
                    return entry.map(|(found, value)| (found, value));
                }
                Slot::Vacant => return None,
            }
            hash >>= LEVEL_BITS;
        }
    }

    /// Whether `key` has a value.
    pub fn contains<Q>(&self, seed: Seed, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.get(seed, key).is_some()
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Hamt<K, V> {
    /// Sets the value of `key` and returns the previous one.
    pub fn insert(&mut self, seed: Seed, key: K, value: V) -> Option<V> {
        let hash = seed.hash(&key);
        self.root.insert(seed, hash, 0, key, value)
    }

    /// Mutable access to the value of `key`. Copies shared nodes on the path to it.
    pub fn get_mut<Q>(&mut self, seed: Seed, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.entry_mut(seed, key).map(|(_, value)| value)
    }

    /// The stored key equal to `key`, with mutable access to its value as in [`Hamt::get_mut`].
    pub fn entry_mut<Q>(&mut self, seed: Seed, key: &Q) -> Option<(&K, &mut V)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = seed.hash(key);
        // A look-up first, so that a miss copies nothing.
        self.get_hashed(hash, key)?;
        self.root.entry_mut(hash, key)
    }

    /// Removes `key`; returns whether it was present.
    pub fn remove<Q>(&mut self, seed: Seed, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = seed.hash(key);
        if self.get_hashed(hash, key).is_none() {
            return false;
        }
        self.root.remove(hash, key);
        true
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Hamt<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'a, K, V> IntoIterator for &'a Hamt<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Iter<'a, K, V> {
        self.iter()
    }
}

/// Iterator over the entries of a [`Hamt`].
pub struct Iter<'a, K, V> {
    levels: Vec<slice::Iter<'a, Slot<K, V>>>,
    list: slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<(&'a K, &'a V)> {
        loop {
            if let Some((key, value)) = self.list.next() {
                return Some((key, value));
            }
            match self.levels.last_mut()?.next() {
                Some(Slot::Entry(key, value)) => return Some((key, value)),
                Some(Slot::Node(child)) => self.levels.push(child.slots().iter()),
                Some(Slot::List(list)) => self.list = list.iter(),
                Some(Slot::Vacant) => {}
                None => {
                    self.levels.pop();
                }
            }
        }
    }
}

/// A node that stores only the slots with their bit set.
struct Node<K, V> {
    slots: Option<Arc<[Slot<K, V>]>>,
    bitmap: u32,
    /// The number of entries in this node and below.
    count: u32,
}

/// The content of one slot of a node.
#[derive(Clone)]
enum Slot<K, V> {
    Entry(K, V),
    Node(Node<K, V>),
    /// Keys with equal hashes.
    List(Arc<Vec<(K, V)>>),
    /// A placeholder while the content is being moved; never visible between two calls.
    Vacant,
}

impl<K, V> Clone for Node<K, V> {
    fn clone(&self) -> Node<K, V> {
        Node { slots: self.slots.clone(), bitmap: self.bitmap, count: self.count }
    }
}

impl<K, V> Node<K, V> {
    fn empty() -> Node<K, V> {
        Node { slots: None, bitmap: 0, count: 0 }
    }

    fn slots(&self) -> &[Slot<K, V>] {
        self.slots.as_deref().unwrap_or_default()
    }

    fn slot(&self, hash: u64) -> Option<&Slot<K, V>> {
        let (bit, index) = self.place(hash);
        if self.bitmap & bit == 0 {
            return None;
        }
        self.slots().get(index)
    }

    /// The bit for `hash` in this node, and the index of its slot.
    fn place(&self, hash: u64) -> (u32, usize) {
        let bit = 1u32 << (hash & SLOT_MASK);
        (bit, (self.bitmap & (bit - 1)).count_ones() as usize)
    }
}

impl<K: Hash + Eq + Clone, V: Clone> Node<K, V> {
    fn insert(&mut self, seed: Seed, hash: u64, level: u32, key: K, value: V) -> Option<V> {
        let (bit, index) = self.place(hash);
        if self.bitmap & bit == 0 {
            self.add(bit, index, Slot::Entry(key, value));
            self.count += 1;
            return None;
        }
        let slot = self.slot_mut(index);
        let old = match slot {
            Slot::Entry(found, old) if *found == key => Some(mem::replace(old, value)),
            Slot::Node(child) => child.insert(seed, hash >> LEVEL_BITS, level + 1, key, value),
            Slot::List(list) => insert_into_list(Arc::make_mut(list), key, value),
            Slot::Entry(..) | Slot::Vacant => {
                let other = mem::replace(slot, Slot::Vacant);
                *slot = joined(seed, level + 1, other, hash >> LEVEL_BITS, key, value);
                None
            }
        };
        if old.is_none() {
            self.count += 1;
        }
        old
    }

    fn entry_mut<Q>(&mut self, hash: u64, key: &Q) -> Option<(&K, &mut V)>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let (bit, index) = self.place(hash);
        if self.bitmap & bit == 0 {
            return None;
        }
        match self.slot_mut(index) {
            Slot::Entry(found, value) => ((*found).borrow() == key).then_some((&*found, value)),
            Slot::Node(child) => child.entry_mut(hash >> LEVEL_BITS, key),
            Slot::List(list) => {
                let entry = Arc::make_mut(list).iter_mut().find(|(found, _)| found.borrow() == key);
                entry.map(|(found, value)| (&*found, value))
            }
            Slot::Vacant => None,
        }
    }

    /// Removes `key`, which must be present.
    fn remove<Q>(&mut self, hash: u64, key: &Q)
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let (bit, index) = self.place(hash);
        self.count -= 1;
        let slot = self.slot_mut(index);
        match slot {
            Slot::Entry(..) | Slot::Vacant => self.take(bit, index),
            Slot::Node(child) => {
                child.remove(hash >> LEVEL_BITS, key);
                // A lone entry moves up, so that the shape depends on the content only.
                if let Some(entry) = child.lone_entry() {
                    *slot = entry;
                }
            }
            Slot::List(list) => {
                let list = Arc::make_mut(list);
                list.retain(|(found, _)| found.borrow() != key);
                if list.len() == 1
                    && let Some((key, value)) = list.pop()
                {
                    *slot = Slot::Entry(key, value);
                }
            }
        }
    }

    fn slot_mut(&mut self, index: usize) -> &mut Slot<K, V> {
        let slots = self.slots.as_mut().expect("a set bit has a slot");
        &mut Arc::make_mut(slots)[index]
    }

    /// Takes the entry out of this node if it is the only slot.
    fn lone_entry(&mut self) -> Option<Slot<K, V>> {
        match self.slots() {
            [Slot::Entry(..)] => Some(mem::replace(self.slot_mut(0), Slot::Vacant)),
            _ => None,
        }
    }

    fn add(&mut self, bit: u32, index: usize, slot: Slot<K, V>) {
        let mut slots = self.take_slots(1);
        slots.insert(index, slot);
        self.slots = Some(Arc::from(slots));
        self.bitmap |= bit;
    }

    fn take(&mut self, bit: u32, index: usize) {
        let mut slots = self.take_slots(0);
        slots.remove(index);
        self.slots = if slots.is_empty() { None } else { Some(Arc::from(slots)) };
        self.bitmap &= !bit;
    }

    /// Moves the slots out of a node that is not shared; clones them from a shared one.
    fn take_slots(&mut self, room: usize) -> Vec<Slot<K, V>> {
        let mut taken = Vec::with_capacity(self.slots().len() + room);
        match self.slots.as_mut().map(|slots| Arc::get_mut(slots).ok_or(())) {
            None => {}
            Some(Ok(own)) => taken.extend(own.iter_mut().map(|slot| mem::replace(slot, Slot::Vacant))),
            Some(Err(())) => taken.extend(self.slots().iter().cloned()),
        }
        taken
    }
}

fn insert_into_list<K: Eq, V>(list: &mut Vec<(K, V)>, key: K, value: V) -> Option<V> {
    match list.iter_mut().find(|(found, _)| *found == key) {
        Some((_, old)) => Some(mem::replace(old, value)),
        None => {
            list.push((key, value));
            None
        }
    }
}

/// Builds a slot for two entries that collided on the level above.
fn joined<K, V>(seed: Seed, level: u32, other: Slot<K, V>, hash: u64, key: K, value: V) -> Slot<K, V>
where
    K: Hash + Eq + Clone,
    V: Clone,
{
    let Slot::Entry(other_key, other_value) = other else {
        return Slot::Entry(key, value);
    };
    if level == LEVELS {
        return Slot::List(Arc::new(vec![(other_key, other_value), (key, value)]));
    }
    let mut node = Node::empty();
    let other_hash = seed.hash(&other_key) >> (level * LEVEL_BITS);
    node.insert(seed, other_hash, level, other_key, other_value);
    node.insert(seed, hash, level, key, value);
    Slot::Node(node)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const SEED: Seed = Seed(7);

    /// A key that shares its hash with many others.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    struct Key {
        number: u16,
        spread: u16,
    }

    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            (self.number % self.spread).hash(state);
        }
    }

    fn content(map: &Hamt<Key, u32>) -> BTreeMap<Key, u32> {
        map.iter().map(|(key, value)| (*key, *value)).collect()
    }

    proptest! {
        #[test]
        fn behaves_as_an_ordered_map_and_old_copies_stay(
            spread in prop_oneof![Just(1u16), Just(3), Just(50), Just(u16::MAX)],
            operations in prop::collection::vec((0u16..200, any::<u32>(), 0u8..4), 0..400),
        ) {
            let mut map = Hamt::default();
            let mut model = BTreeMap::new();
            let mut copies = Vec::new();
            for (step, (number, value, operation)) in operations.into_iter().enumerate() {
                let key = Key { number, spread };
                match operation {
                    0 | 1 => prop_assert_eq!(map.insert(SEED, key, value), model.insert(key, value)),
                    2 => prop_assert_eq!(map.remove(SEED, &key), model.remove(&key).is_some()),
                    _ => {
                        let found = map.get_mut(SEED, &key);
                        prop_assert_eq!(found.as_deref(), model.get(&key));
                        if let (Some(found), Some(expected)) = (found, model.get_mut(&key)) {
                            *found = value;
                            *expected = value;
                        }
                    }
                }
                prop_assert_eq!(map.len(), model.len());
                if step % 37 == 0 {
                    copies.push((map.clone(), model.clone()));
                }
            }
            copies.push((map, model));
            for (map, model) in copies {
                prop_assert_eq!(content(&map), model.clone());
                for number in 0..200 {
                    let key = Key { number, spread };
                    prop_assert_eq!(map.get(SEED, &key), model.get(&key));
                }
            }
        }

        #[test]
        fn order_depends_on_content_only_while_hashes_differ(
            numbers in prop::collection::btree_set(0u16..1000, 0..200),
            extra in prop::collection::vec(1000u16..2000, 0..100),
        ) {
            let mut rising = Hamt::default();
            for number in &numbers {
                rising.insert(SEED, *number, ());
            }
            let mut falling = Hamt::default();
            for number in extra.iter().chain(numbers.iter().rev()) {
                falling.insert(SEED, *number, ());
            }
            for number in &extra {
                falling.remove(SEED, number);
            }
            let order = |map: &Hamt<u16, ()>| map.iter().map(|(key, ())| *key).collect::<Vec<_>>();
            prop_assert_eq!(order(&rising), order(&falling));
        }
    }

    #[test]
    fn a_node_is_no_larger_than_planned() {
        assert_eq!(size_of::<Hamt<u64, u64>>(), 24);
    }
}
