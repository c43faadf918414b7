//! Sets of subject patterns, from which rights are made.
//!
//! A literal subject is looked up in a trie, in time that depends on the subject and not on the
//! number of patterns. A pattern is compared with each member in turn, once per subscription.

use std::sync::Arc;

use hashbrown::HashMap;

use super::pattern::{Pattern, PatternError, Step, is_match};
use crate::name::Name;

/// The hasher of tokens; it needs no secret, because operators choose the tokens.
type Hasher = foldhash::fast::FixedState;

/// A set of subject patterns, each of which may be limited to members of a group.
#[derive(Debug, Default)]
pub struct SubjectSet {
    items: Vec<Item>,
    nodes: Vec<Node>,
    /// The pattern `>`, which here includes the empty subject.
    all: Option<End>,
}

#[derive(Debug)]
struct Item {
    pattern: Pattern,
    is_all: bool,
    group: Option<Group>,
}

/// A group name, or a pattern of group names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: Name,
    pattern: Option<Pattern>,
}

/// A node of the trie.
#[derive(Debug, Default)]
struct Node {
    literals: HashMap<Box<[u8]>, usize, Hasher>,
    one: Option<usize>,
    /// Patterns that end here.
    end: Option<End>,
    /// Patterns that match any number of tokens from here on.
    many: Option<End>,
}

/// The readers whose patterns end in one node.
#[derive(Debug, Default, Clone)]
struct End {
    is_plain: bool,
    groups: Vec<Group>,
}

/// The kinds of patterns that matched.
#[derive(Debug, Default, Clone, Copy)]
struct Matches {
    /// A pattern that applies to every reader.
    is_plain: bool,
    /// A pattern limited to some group.
    has_group: bool,
    /// A pattern limited to the reader's own group.
    is_group: bool,
}

impl Group {
    fn new(name: &[u8]) -> Group {
        let pattern = Pattern::nats(name).ok().filter(|pattern| pattern.subject().is_none());
        Group { name: Name::new(name), pattern }
    }

    fn has(&self, group: &[u8]) -> bool {
        self.name.as_bytes() == group || self.pattern.as_ref().is_some_and(|pattern| is_match(pattern, group))
    }
}

impl End {
    fn add(&mut self, group: Option<Group>) {
        match group {
            Some(group) => self.groups.push(group),
            None => self.is_plain = true,
        }
    }
}

impl Matches {
    fn add(&mut self, end: &End, group: Option<&[u8]>) {
        self.is_plain |= end.is_plain;
        self.has_group |= !end.groups.is_empty();
        self.is_group |= group.is_some_and(|group| end.groups.iter().any(|one| one.has(group)));
    }
}

impl SubjectSet {
    /// Builds a set from patterns in the syntax of NATS. A pattern may be followed by a space and a
    /// group. The pattern `>` matches every subject, including the empty one.
    ///
    /// # Errors
    /// The first text that is not a pattern, and the reason.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<SubjectSet, (&'a str, PatternError)> {
        let mut set = SubjectSet { nodes: vec![Node::default()], ..SubjectSet::default() };
        for text in texts {
            let (subject, group) = match text.trim().split_once(' ') {
                Some((subject, group)) => (subject, Some(Group::new(group.trim().as_bytes()))),
                None => (text.trim(), None),
            };
            let pattern = Pattern::nats(subject.as_bytes()).map_err(|error| (text, error))?;
            set.add(pattern, subject == ">", group);
        }
        Ok(set)
    }

    fn add(&mut self, pattern: Pattern, is_all: bool, group: Option<Group>) {
        if is_all {
            self.all.get_or_insert_default().add(group.clone());
        } else {
            let mut at = 0;
            let mut is_many = false;
            for step in pattern.steps() {
                match step {
                    Step::Many => is_many = true,
                    Step::One => at = self.one_behind(at),
                    Step::Literal(token) => at = self.literal_behind(at, token),
                }
            }
            if let Some(node) = self.nodes.get_mut(at) {
                let end = if is_many { &mut node.many } else { &mut node.end };
                end.get_or_insert_default().add(group.clone());
            }
        }
        self.items.push(Item { pattern, is_all, group });
    }

    fn one_behind(&mut self, at: usize) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(at) else { return at };
        if let Some(one) = node.one {
            return one;
        }
        node.one = Some(next);
        self.nodes.push(Node::default());
        next
    }

    fn literal_behind(&mut self, at: usize, token: &[u8]) -> usize {
        let next = self.nodes.len();
        let Some(node) = self.nodes.get_mut(at) else { return at };
        let found = *node.literals.entry(token.into()).or_insert(next);
        if found == next {
            self.nodes.push(Node::default());
        }
        found
    }

    /// Whether the set has no patterns.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The number of patterns.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether the patterns allow a subject to a reader, which may be a member of a group. As in
    /// nats-server, once a matching pattern names a group, a member needs one that names its own
    /// group.
    pub fn allows(&self, subject: &[u8], group: Option<&[u8]>) -> bool {
        self.of_subject(subject, group).allow(group)
    }

    /// Whether the patterns deny a subject to a reader, which may be a member of a group.
    #[inline]
    pub fn denies(&self, subject: &[u8], group: Option<&[u8]>) -> bool {
        !self.is_empty() && self.of_subject(subject, group).deny()
    }

    /// Whether the patterns allow all that `pattern` matches; a single one of them must cover it.
    pub fn allows_all_of(&self, pattern: &Pattern, group: Option<&[u8]>) -> bool {
        self.of_items(group, |item| item.covers(pattern)).allow(group)
    }

    /// Whether the patterns deny all that `pattern` matches; a single one of them must cover it.
    pub fn denies_all_of(&self, pattern: &Pattern, group: Option<&[u8]>) -> bool {
        self.of_items(group, |item| item.covers(pattern)).deny()
    }

    /// Whether the patterns deny anything that `pattern` matches.
    pub fn denies_any_of(&self, pattern: &Pattern, group: Option<&[u8]>) -> bool {
        self.of_items(group, |item| item.is_all || overlaps(&item.pattern, pattern)).deny()
    }

    fn of_items(&self, group: Option<&[u8]>, is_it: impl Fn(&Item) -> bool) -> Matches {
        let mut matches = Matches::default();
        for item in self.items.iter().filter(|item| is_it(item)) {
            matches.is_plain |= item.group.is_none();
            matches.has_group |= item.group.is_some();
            let has = |one: &Group| group.is_some_and(|group| one.has(group));
            matches.is_group |= item.group.as_ref().is_some_and(has);
        }
        matches
    }

    fn of_subject(&self, subject: &[u8], group: Option<&[u8]>) -> Matches {
        let mut matches = Matches::default();
        if let Some(all) = &self.all {
            matches.add(all, group);
        }
        self.descend(0, (!subject.is_empty()).then_some(subject), group, &mut matches);
        matches
    }

    /// Visits each node at most once, and no deeper than the number of tokens in the subject.
    fn descend(&self, at: usize, rest: Option<&[u8]>, group: Option<&[u8]>, matches: &mut Matches) {
        let Some(node) = self.nodes.get(at) else { return };
        if let Some(many) = &node.many {
            matches.add(many, group);
        }
        let Some(rest) = rest else {
            if let Some(end) = &node.end {
                matches.add(end, group);
            }
            return;
        };
        let (token, behind) = match memchr::memchr(b'.', rest) {
            Some(dot) => (rest.get(..dot).unwrap_or_default(), rest.get(dot + 1..)),
            None => (rest, None),
        };
        if !node.literals.is_empty()
            && let Some(next) = node.literals.get(token)
        {
            self.descend(*next, behind, group, matches);
        }
        if let Some(next) = node.one {
            self.descend(next, behind, group, matches);
        }
    }
}

/// The subjects that are withheld from a reader.
#[derive(Debug, Clone)]
pub struct SubjectFilter {
    denied: Arc<SubjectSet>,
    group: Option<Name>,
    /// Whether the reader's own pattern matches some denied subjects.
    is_partial: bool,
    /// The last subject and its verdict, cached because most messages repeat the previous subject.
    last: Option<(Vec<u8>, bool)>,
}

impl SubjectFilter {
    /// A filter that withholds what the set denies to a reader of `pattern`, which may be a member
    /// of a group.
    pub fn new(denied: &Arc<SubjectSet>, pattern: &Pattern, group: Option<&[u8]>) -> SubjectFilter {
        let is_partial = pattern.subject().is_none() && denied.denies_any_of(pattern, group);
        SubjectFilter { denied: Arc::clone(denied), group: group.map(Name::new), is_partial, last: None }
    }

    /// Whether to withhold a message with this subject, which the reader's pattern matches.
    #[inline]
    pub fn withholds(&mut self, subject: &[u8]) -> bool {
        match &self.last {
            _ if !self.is_partial => false,
            Some((last, is_denied)) if *last == subject => *is_denied,
            _ => self.decide(subject),
        }
    }

    fn decide(&mut self, subject: &[u8]) -> bool {
        let is_denied = self.denies(subject);
        let (last, was_denied) = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(subject);
        *was_denied = is_denied;
        is_denied
    }

    /// Whether the set denies this subject, whatever the reader's pattern.
    pub fn denies(&self, subject: &[u8]) -> bool {
        self.denied.denies(subject, self.group.as_ref().map(Name::as_bytes))
    }
}

impl Matches {
    fn allow(self, group: Option<&[u8]>) -> bool {
        if group.is_some() && self.has_group { self.is_group } else { self.is_plain }
    }

    fn deny(self) -> bool {
        self.is_plain || self.is_group
    }
}

impl Item {
    /// Whether this pattern matches every subject that `other` matches.
    fn covers(&self, other: &Pattern) -> bool {
        if self.is_all {
            return true;
        }
        let (own, other) = (self.pattern.steps(), other.steps());
        let is_many = |step: &Step<'_>| matches!(step, Step::Many);
        let (own, is_open) = match own.as_slice() {
            [steps @ .., Step::Many] => (steps, true),
            steps => (steps, false),
        };
        // From the first many of `other` on, its tokens have no fixed position.
        let fixed = other.iter().position(is_many).unwrap_or(other.len());
        let tokens_min = other.iter().filter(|step| !is_many(step)).count();
        let reaches =
            if is_open { tokens_min >= own.len() } else { fixed == other.len() && fixed == own.len() };
        reaches
            && own.iter().enumerate().all(|(at, step)| match step {
                Step::Literal(_) => at < fixed && other.get(at) == Some(step),
                Step::One | Step::Many => true,
            })
    }
}

/// Whether some subject matches both patterns.
fn overlaps(a: &Pattern, b: &Pattern) -> bool {
    let (a, b) = (a.steps(), b.steps());
    // `reached[j]`: the steps of `a` so far and the first `j` steps of `b` match a common subject.
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    let skip_many = |reached: &mut Vec<bool>| {
        for (at, step) in b.iter().enumerate() {
            if *step == Step::Many && reached[at] {
                reached[at + 1] = true;
            }
        }
    };
    skip_many(&mut reached);
    for step in &a {
        let mut next = vec![false; reached.len()];
        for (at, own) in b.iter().enumerate() {
            match (step, own) {
                // The many of `a` may cover this step of `b`, or match nothing.
                (Step::Many, _) => {
                    next[at] |= reached[at];
                    next[at + 1] |= next[at];
                }
                (_, Step::Many) => next[at] |= reached[at],
                (Step::Literal(one), Step::Literal(other)) => next[at + 1] |= reached[at] && one == other,
                (Step::One, _) | (_, Step::One) => next[at + 1] |= reached[at],
            }
        }
        if *step == Step::Many {
            next[b.len()] |= reached[b.len()];
        }
        reached = next;
        skip_many(&mut reached);
    }
    reached.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
