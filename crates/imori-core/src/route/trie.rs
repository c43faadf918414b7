//! The bindings of a topic exchange: one trie for the wildcards of all protocols.
//!
//! Patterns without wildcards are found by hash. The others form a trie of their steps, in which
//! the remaining steps of a pattern that no other shares are packed into one leaf. The steps behind
//! the last many of a pattern have a fixed position, counted from the end of the subject. The steps
//! between two manys are tried at every token, so their number is limited when binding.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::mem;
use std::ptr;
use std::sync::Arc;

use super::binding::{Binding, Bound, Targets};
use super::hamt::{Hamt, Seed};
use super::literals::{Literals, Lookup};
use super::pattern::{self, Pattern, Step, Steps};
use crate::name::Name;

/// Patterns and their bindings.
#[derive(Debug, Default, Clone)]
pub(crate) struct Trie {
    /// Patterns without wildcards, by subject.
    subjects: Literals,
    /// Patterns with wildcards that match reserved subjects too.
    open: Fork,
    /// Patterns with wildcards that do not match reserved subjects.
    guarded: Fork,
}

impl Trie {
    /// Adds a binding; returns whether it is new.
    pub(crate) fn insert(&mut self, seed: Seed, pattern: &Pattern, bound: Bound) -> bool {
        match (pattern.subject(), pattern.wild_steps()) {
            (_, Some(steps)) => self.root_mut(pattern).place(seed, steps).insert(seed, bound),
            (Some(subject), None) => self.subjects.insert(seed, subject, bound),
            (None, None) => false,
        }
    }

    /// Removes a binding; returns whether it was present.
    pub(crate) fn remove(&mut self, seed: Seed, pattern: &Pattern, bound: &Bound) -> bool {
        if let Some(steps) = pattern.wild_steps() {
            return self.root_mut(pattern).remove(seed, steps, bound).is_some();
        }
        pattern.subject().is_some_and(|subject| self.subjects.remove(seed, subject, bound))
    }

    /// Whether there are no bindings.
    pub(crate) fn is_empty(&self) -> bool {
        self.subjects.is_empty() && self.open.is_empty() && self.guarded.is_empty()
    }

    /// Calls `found` once with the bindings of each pattern that matches `subject`.
    pub(crate) fn matches(&self, seed: Seed, subject: &[u8], found: &mut dyn FnMut(&Targets)) -> Looks {
        let Lookup { targets, asks_last } = self.subjects.get(seed, subject);
        targets.into_iter().for_each(&mut *found);
        let looks = Looks { count: 1, asks_last };
        if self.open.is_empty() && self.guarded.is_empty() {
            return looks;
        }
        if pattern::is_private(subject) {
            return Looks { asks_last: true, ..looks };
        }
        let tokens: Vec<Token<'_>> =
            pattern::tokens(subject).map(|bytes| Token { bytes, hash: OnceCell::new() }).collect();
        let mut walk =
            Walk { seed, tokens: &tokens, found, is_floating: false, seen: BTreeSet::new(), looks };
        walk.fork(&self.open, 0);
        if !pattern::is_reserved(subject) {
            walk.fork(&self.guarded, 0);
        }
        // A single token is also the first one, which decides whether the subject is reserved.
        walk.looks.asks_last |= tokens.len() < 2 || pattern::may_be_private(subject);
        walk.looks
    }

    /// Calls `visit` with each binding; keys are shown in the syntax of AMQP.
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(Binding<'_>)) {
        self.subjects.for_each(&mut |subject, targets| {
            targets.for_each(&mut |bound| visit(bound.binding(subject.as_bytes())));
        });
        for root in [&self.open, &self.guarded] {
            root.for_each(&mut Vec::new(), visit);
        }
    }

    fn root_mut(&mut self, pattern: &Pattern) -> &mut Fork {
        if pattern.is_guarded() { &mut self.guarded } else { &mut self.open }
    }
}

/// The cost of a match, and whether the last token affected it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Looks {
    /// The number of nodes and tokens visited.
    pub(crate) count: usize,
    /// Whether the last token was compared with anything. If not, the same patterns match all
    /// subjects that differ only in that token.
    pub(crate) asks_last: bool,
}

/// The remaining steps of the patterns that share a prefix.
#[derive(Debug, Clone)]
enum Branch {
    Leaf(Arc<Leaf>),
    Fork(Arc<Fork>),
}

/// The remaining steps of one pattern, which it shares with no other.
#[derive(Debug, Clone)]
struct Leaf {
    rest: Box<[u8]>,
    targets: Targets,
}

/// A node at which patterns diverge.
#[derive(Debug, Default, Clone)]
struct Fork {
    /// Bindings with a pattern that ends here.
    here: Targets,
    literals: Hamt<Name, Branch>,
    one: Option<Branch>,
    many: Option<Arc<Many>>,
}

/// The steps of patterns behind a many.
#[derive(Debug, Default, Clone)]
struct Many {
    /// Bindings with a pattern that ends here; they match any remaining tokens.
    here: Targets,
    /// Remaining steps without a many, by their number; they match the end of the subject.
    tails: Vec<(usize, Branch)>,
    /// Remaining steps with another many; they may start at any token.
    floating: Option<Branch>,
}

impl Branch {
    fn leaf(rest: Steps<'_>) -> Branch {
        Branch::Leaf(Arc::new(Leaf { rest: Box::from(rest.packed()), targets: Targets::None }))
    }

    /// The bindings of the pattern that continues with `rest`; creates its node if missing.
    fn place(&mut self, seed: Seed, rest: Steps<'_>) -> &mut Targets {
        if let Branch::Leaf(leaf) = self
            && *leaf.rest != *rest.packed()
        {
            self.split(seed);
        }
        match self {
            Branch::Leaf(leaf) => &mut Arc::make_mut(leaf).targets,
            Branch::Fork(fork) => Arc::make_mut(fork).place(seed, rest),
        }
    }

    /// Turns a leaf into a fork.
    fn split(&mut self, seed: Seed) {
        if let Branch::Leaf(leaf) = mem::replace(self, Branch::Fork(Arc::default())) {
            let leaf = Arc::unwrap_or_clone(leaf);
            let mut fork = Fork::default();
            *fork.place(seed, Steps::new(&leaf.rest)) = leaf.targets;
            *self = Branch::Fork(Arc::new(fork));
        }
    }

    /// Removes a binding: `None` if it was not present, else whether the branch is now empty.
    fn remove(&mut self, seed: Seed, rest: Steps<'_>, bound: &Bound) -> Option<bool> {
        match self {
            Branch::Leaf(leaf) if *leaf.rest != *rest.packed() => None,
            Branch::Leaf(leaf) => remove_from(&mut Arc::make_mut(leaf).targets, seed, bound),
            Branch::Fork(fork) => Arc::make_mut(fork).remove(seed, rest, bound),
        }
    }

    fn for_each(&self, key: &mut Vec<Vec<u8>>, visit: &mut dyn FnMut(Binding<'_>)) {
        match self {
            Branch::Fork(fork) => fork.for_each(key, visit),
            Branch::Leaf(leaf) => {
                let depth = key.len();
                key.extend(Steps::new(&leaf.rest).map(shown));
                visit_all(&leaf.targets, key, visit);
                key.truncate(depth);
            }
        }
    }
}

impl Fork {
    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.literals.is_empty() && self.one.is_none() && self.many.is_none()
    }

    fn place(&mut self, seed: Seed, mut rest: Steps<'_>) -> &mut Targets {
        match rest.next() {
            None => &mut self.here,
            Some(Step::One) => self.one.get_or_insert_with(|| Branch::leaf(rest)).place(seed, rest),
            Some(Step::Many) => Arc::make_mut(self.many.get_or_insert_default()).place(seed, rest),
            Some(Step::Literal(token)) => {
                if !self.literals.contains(seed, token) {
                    self.literals.insert(seed, Name::new(token), Branch::leaf(rest));
                }
                let branch = self.literals.get_mut(seed, token).expect("it was put there if it was missing");
                branch.place(seed, rest)
            }
        }
    }

    fn remove(&mut self, seed: Seed, mut rest: Steps<'_>, bound: &Bound) -> Option<bool> {
        match rest.next() {
            None => {
                remove_from(&mut self.here, seed, bound)?;
            }
            Some(Step::One) => {
                if self.one.as_mut()?.remove(seed, rest, bound)? {
                    self.one = None;
                }
            }
            Some(Step::Many) => {
                if Arc::make_mut(self.many.as_mut()?).remove(seed, rest, bound)? {
                    self.many = None;
                }
            }
            Some(Step::Literal(token)) => {
                if self.literals.get_mut(seed, token)?.remove(seed, rest, bound)? {
                    self.literals.remove(seed, token);
                }
            }
        }
        Some(self.is_empty())
    }

    fn for_each(&self, key: &mut Vec<Vec<u8>>, visit: &mut dyn FnMut(Binding<'_>)) {
        visit_all(&self.here, key, visit);
        for (token, branch) in &self.literals {
            key.push(token.as_bytes().to_vec());
            branch.for_each(key, visit);
            key.pop();
        }
        if let Some(one) = &self.one {
            key.push(shown(Step::One));
            one.for_each(key, visit);
            key.pop();
        }
        if let Some(many) = &self.many {
            key.push(shown(Step::Many));
            visit_all(&many.here, key, visit);
            for branch in many.tails.iter().map(|(_, branch)| branch).chain(&many.floating) {
                branch.for_each(key, visit);
            }
            key.pop();
        }
    }
}

impl Many {
    fn is_empty(&self) -> bool {
        self.here.is_empty() && self.tails.is_empty() && self.floating.is_none()
    }

    fn place(&mut self, seed: Seed, rest: Steps<'_>) -> &mut Targets {
        let len = rest.count();
        if len == 0 {
            return &mut self.here;
        }
        if rest.has_many() {
            return self.floating.get_or_insert_with(|| Branch::leaf(rest)).place(seed, rest);
        }
        let index = match self.tails.binary_search_by_key(&len, |(len, _)| *len) {
            Ok(index) => index,
            Err(index) => {
                self.tails.insert(index, (len, Branch::leaf(rest)));
                index
            }
        };
        self.tails[index].1.place(seed, rest)
    }

    fn remove(&mut self, seed: Seed, rest: Steps<'_>, bound: &Bound) -> Option<bool> {
        let len = rest.count();
        if len == 0 {
            remove_from(&mut self.here, seed, bound)?;
        } else if rest.has_many() {
            if self.floating.as_mut()?.remove(seed, rest, bound)? {
                self.floating = None;
            }
        } else {
            let index = self.tails.binary_search_by_key(&len, |(len, _)| *len).ok()?;
            if self.tails[index].1.remove(seed, rest, bound)? {
                self.tails.remove(index);
            }
        }
        Some(self.is_empty())
    }
}

fn remove_from(targets: &mut Targets, seed: Seed, bound: &Bound) -> Option<bool> {
    targets.remove(seed, bound).then(|| targets.is_empty())
}

fn shown(step: Step<'_>) -> Vec<u8> {
    match step {
        Step::Literal(token) => token.to_vec(),
        Step::One => b"*".to_vec(),
        Step::Many => b"#".to_vec(),
    }
}

fn visit_all(targets: &Targets, key: &[Vec<u8>], visit: &mut dyn FnMut(Binding<'_>)) {
    if !targets.is_empty() {
        let key = key.join(&b'.');
        targets.for_each(&mut |bound| visit(bound.binding(&key)));
    }
}

/// A token of the subject, with its hash, which is computed on first use.
struct Token<'a> {
    bytes: &'a [u8],
    hash: OnceCell<u64>,
}

/// The state of matching one subject.
struct Walk<'a> {
    seed: Seed,
    tokens: &'a [Token<'a>],
    found: &'a mut dyn FnMut(&Targets),
    /// Whether the walk is between two manys of a pattern.
    is_floating: bool,
    /// Addresses of the manys and leaves visited while floating. The first visit leaves the longest
    /// rest of the subject, so another visit would find nothing new.
    seen: BTreeSet<usize>,
    looks: Looks,
}

/// The result of comparing a leaf's steps with the rest of the subject.
enum Outcome {
    /// A step before the leaf's first many did not match.
    Refused,
    Matched,
    /// The steps after a many did not match, so starting at a later token would not match either.
    RefusedForGood,
}

impl Walk<'_> {
    fn branch(&mut self, branch: &Branch, at: usize) {
        self.looks.count += 1;
        match branch {
            Branch::Fork(fork) => self.fork(fork, at),
            Branch::Leaf(leaf) => self.leaf(leaf, at),
        }
    }

    fn fork(&mut self, fork: &Fork, at: usize) {
        match self.tokens.get(at) {
            None => self.emit(&fork.here),
            Some(token) => {
                if !fork.literals.is_empty() {
                    self.asked(at);
                    let hash = *token.hash.get_or_init(|| self.seed.hash(token.bytes));
                    if let Some(branch) = fork.literals.get_hashed(hash, token.bytes) {
                        self.branch(branch, at + 1);
                    }
                }
                if let Some(branch) = &fork.one {
                    self.branch(branch, at + 1);
                }
            }
        }
        if let Some(many) = &fork.many {
            self.many(many, at);
        }
    }

    fn many(&mut self, many: &Many, at: usize) {
        if self.is_floating && !self.seen.insert(ptr::from_ref(many).addr()) {
            return;
        }
        self.emit(&many.here);
        for (len, branch) in &many.tails {
            match self.tokens.len().checked_sub(*len) {
                Some(start) if start >= at => self.branch(branch, start),
                // The tails are sorted by length: the remaining ones are longer still.
                _ => break,
            }
        }
        if let Some(branch) = &many.floating {
            let outer = mem::replace(&mut self.is_floating, true);
            for start in at..=self.tokens.len() {
                self.branch(branch, start);
            }
            self.is_floating = outer;
        }
    }

    fn leaf(&mut self, leaf: &Leaf, at: usize) {
        if !self.is_floating {
            if let Outcome::Matched = self.rest(Steps::new(&leaf.rest), at) {
                self.emit(&leaf.targets);
            }
            return;
        }
        let address = ptr::from_ref(leaf).addr();
        if self.seen.contains(&address) {
            return;
        }
        match self.rest(Steps::new(&leaf.rest), at) {
            Outcome::Refused => return,
            Outcome::Matched => self.emit(&leaf.targets),
            Outcome::RefusedForGood => {}
        }
        self.seen.insert(address);
    }

    fn rest(&mut self, mut rest: Steps<'_>, mut at: usize) -> Outcome {
        while let Some(step) = rest.next() {
            if step == Step::Many {
                let is_match = self.after_many(rest, at);
                return if is_match { Outcome::Matched } else { Outcome::RefusedForGood };
            }
            if !self.agrees(step, at) {
                return Outcome::Refused;
            }
            at += 1;
        }
        if at == self.tokens.len() { Outcome::Matched } else { Outcome::Refused }
    }

    /// Whether the steps behind a many match the subject from any token at or after `at`.
    fn after_many(&mut self, rest: Steps<'_>, mut at: usize) -> bool {
        if rest.packed().is_empty() {
            return true;
        }
        let steps: Vec<Step<'_>> = rest.collect();
        let mut parts: Vec<&[Step<'_>]> = steps.split(|step| *step == Step::Many).collect();
        let last = parts.pop().unwrap_or_default();
        let Some(end) = self.tokens.len().checked_sub(last.len()) else {
            return false;
        };
        // The leftmost match of each part leaves the most tokens to the next.
        for part in parts {
            let mut places = at..(end + 1).saturating_sub(part.len());
            match places.find(|start| self.agree(part, *start)) {
                Some(start) => at = start + part.len(),
                None => return false,
            }
        }
        at <= end && self.agree(last, end)
    }

    fn agree(&mut self, steps: &[Step<'_>], at: usize) -> bool {
        steps.iter().enumerate().all(|(index, step)| self.agrees(*step, at + index))
    }

    fn agrees(&mut self, step: Step<'_>, at: usize) -> bool {
        self.looks.count += 1;
        match (step, self.tokens.get(at)) {
            (Step::Literal(wanted), Some(token)) => {
                self.asked(at);
                token.bytes == wanted
            }
            (Step::One, Some(_)) => true,
            (_, None) | (Step::Many, _) => false,
        }
    }

    /// Records that the token at `at` is compared.
    fn asked(&mut self, at: usize) {
        self.looks.asks_last |= at + 1 == self.tokens.len();
    }

    fn emit(&mut self, targets: &Targets) {
        if !targets.is_empty() {
            (self.found)(targets);
        }
    }
}

#[cfg(test)]
mod tests;
