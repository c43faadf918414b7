//! Patterns without wildcards, indexed by the one subject that each matches.
//!
//! The index is keyed by stem, the part before the last token. One look-up therefore tells whether
//! any subject with this stem has bindings, whatever its last token.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::mem;

use super::binding::{Bound, Targets};
use super::hamt::{Hamt, Seed};
use super::pattern;
use crate::name::Name;

/// Subjects and their bindings.
#[derive(Debug, Default, Clone)]
pub(crate) struct Literals {
    stems: Hamt<Stem, Siblings>,
}

/// The result of looking up a subject.
pub(crate) struct Lookup<'a> {
    /// The bindings of the subject.
    pub(crate) targets: Option<&'a Targets>,
    /// Whether another last token could find other bindings.
    pub(crate) asks_last: bool,
}

/// A subject that hashes and compares by its stem alone.
#[derive(Debug, Clone)]
struct Stem(Name);

/// The subjects that share a stem.
#[derive(Debug, Clone)]
enum Siblings {
    /// A single subject, stored in full as the key of its stem.
    Only(Targets),
    /// Several subjects, or what is left of several.
    Several(Hamt<Name, Targets>),
}

impl Literals {
    /// Adds a binding; returns whether it is new.
    pub(crate) fn insert(&mut self, seed: Seed, subject: &Name, bound: Bound) -> bool {
        let Some((known, siblings)) = self.stems.entry_mut(seed, pattern::stem(subject.as_bytes())) else {
            let only = Siblings::Only(Targets::One(bound));
            return self.stems.insert(seed, Stem(subject.clone()), only).is_none();
        };
        match siblings {
            Siblings::Only(targets) if known.0 == *subject => targets.insert(seed, bound),
            Siblings::Only(targets) => {
                let mut several = Hamt::default();
                several.insert(seed, known.0.clone(), mem::take(targets));
                several.insert(seed, subject.clone(), Targets::One(bound));
                *siblings = Siblings::Several(several);
                true
            }
            Siblings::Several(several) => match several.get_mut(seed, subject) {
                Some(targets) => targets.insert(seed, bound),
                None => several.insert(seed, subject.clone(), Targets::One(bound)).is_none(),
            },
        }
    }

    /// Removes a binding; returns whether it was present.
    pub(crate) fn remove(&mut self, seed: Seed, subject: &Name, bound: &Bound) -> bool {
        let stem = pattern::stem(subject.as_bytes());
        // A look-up first, so that a miss copies nothing.
        if self.get(seed, subject.as_bytes()).targets.is_none() {
            return false;
        }
        let Some(siblings) = self.stems.get_mut(seed, stem) else { return false };
        let (is_removed, is_empty) = match siblings {
            Siblings::Only(targets) => (targets.remove(seed, bound), targets.is_empty()),
            Siblings::Several(several) => {
                let Some(targets) = several.get_mut(seed, subject) else { return false };
                let is_removed = targets.remove(seed, bound);
                if targets.is_empty() {
                    several.remove(seed, subject);
                }
                (is_removed, several.is_empty())
            }
        };
        if is_empty {
            self.stems.remove(seed, stem);
        }
        is_removed
    }

    /// Looks up the bindings of a subject.
    pub(crate) fn get(&self, seed: Seed, subject: &[u8]) -> Lookup<'_> {
        let Some((known, siblings)) = self.stems.entry(seed, pattern::stem(subject)) else {
            return Lookup { targets: None, asks_last: false };
        };
        let targets = match siblings {
            Siblings::Only(targets) => (known.0.as_bytes() == subject).then_some(targets),
            Siblings::Several(several) => several.get(seed, subject),
        };
        Lookup { targets, asks_last: true }
    }

    /// Whether there are no bindings.
    pub(crate) fn is_empty(&self) -> bool {
        self.stems.is_empty()
    }

    /// Calls `visit` with each subject and its bindings.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&Name, &Targets)) {
        for (stem, siblings) in &self.stems {
            match siblings {
                Siblings::Only(targets) => visit(&stem.0, targets),
                Siblings::Several(several) => {
                    several.iter().for_each(|(subject, targets)| visit(subject, targets));
                }
            }
        }
    }
}

// `Hash` and `Eq` of a stem are those of its bytes, as `Borrow` demands.
impl Borrow<[u8]> for Stem {
    fn borrow(&self) -> &[u8] {
        pattern::stem(self.0.as_bytes())
    }
}

impl Hash for Stem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<[u8]>::borrow(self).hash(state);
    }
}

impl PartialEq for Stem {
    fn eq(&self, other: &Stem) -> bool {
        Borrow::<[u8]>::borrow(self) == Borrow::<[u8]>::borrow(other)
    }
}

impl Eq for Stem {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::id::QueueId;
    use crate::route::arguments::Arguments;
    use crate::route::target::Target;

    const SEED: Seed = Seed(5);

    fn bound(number: u32) -> Bound {
        Bound::new(&Target::Queue(QueueId { slot: number, generation: 0 }), None, &Arguments::default())
    }

    fn numbers(targets: &Targets) -> BTreeSet<u32> {
        let mut numbers = BTreeSet::new();
        targets.for_each(&mut |bound| match bound.target {
            Target::Queue(id) => assert!(numbers.insert(id.slot)),
            _ => panic!("the tests bind queues only"),
        });
        numbers
    }

    const SUBJECTS: [&str; 12] =
        ["", ".", "a", "b", "a.", ".a", "a.a", "a.b", "a.b.a", "a.b.b", "a.b.", "b.a"];

    proptest! {
        #[test]
        fn subjects_are_told_apart_and_asked_for_by_their_stems(
            changes in prop::collection::vec((any::<bool>(), prop::sample::select(&SUBJECTS[..]), 0..3_u32), 0..60),
        ) {
            let (mut literals, mut model) = (Literals::default(), BTreeSet::new());
            let mut copies = Vec::new();
            for (adds, subject, number) in changes {
                let name = Name::from(subject);
                if adds {
                    prop_assert_eq!(literals.insert(SEED, &name, bound(number)), model.insert((subject, number)));
                } else {
                    let was_there = model.remove(&(subject, number));
                    prop_assert_eq!(literals.remove(SEED, &name, &bound(number)), was_there);
                }
                prop_assert_eq!(literals.is_empty(), model.is_empty());
                copies.push((literals.clone(), model.clone()));
            }
            for (literals, model) in copies {
                for subject in SUBJECTS {
                    let stem = pattern::stem(subject.as_bytes());
                    let look = literals.get(SEED, subject.as_bytes());
                    let expected: BTreeSet<u32> =
                        model.iter().filter(|(known, _)| *known == subject).map(|(_, number)| *number).collect();
                    prop_assert_eq!(look.targets.map(numbers).unwrap_or_default(), expected);
                    let has_siblings = model.iter().any(|(known, _)| pattern::stem(known.as_bytes()) == stem);
                    prop_assert_eq!(look.asks_last, has_siblings, "{}", subject);
                }
                let mut visited = BTreeSet::new();
                literals.for_each(&mut |subject, targets| {
                    visited.extend(numbers(targets).into_iter().map(|number| (subject.to_string(), number)));
                });
                let expected: BTreeSet<(String, u32)> =
                    model.iter().map(|(subject, number)| ((*subject).to_owned(), *number)).collect();
                prop_assert_eq!(visited, expected);
            }
        }
    }

    #[test]
    fn a_subject_alone_needs_no_more_than_its_bindings() {
        assert_eq!(size_of::<Siblings>(), size_of::<Targets>());
    }
}
