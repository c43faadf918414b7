//! Finds the rules whose `equals` a payload can satisfy.

use std::hash::{Hash, Hasher};

use foldhash::fast::FixedState;
use indexmap::{Equivalent, IndexMap};

use crate::criteria::{Criteria, Path};
use crate::value::Value;

/// Positions of rules by the operand of one of their `equals`, and the positions of all other rules.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    paths: Vec<ByValue>,
    others: Vec<u32>,
}

#[derive(Debug, Clone)]
struct ByValue {
    path: Path,
    rules: IndexMap<Literal, Vec<u32>, FixedState>,
    count: usize,
}

/// A value to look up. What Python takes for equal is one literal.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Literal {
    Text(String),
    Int(i64),
    Float(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LiteralRef<'v> {
    Text(&'v str),
    Int(i64),
    Float(u64),
}

impl Index {
    /// Adds a rule under the `equals` that has the fewest rules so far.
    pub(super) fn insert(&mut self, position: u32, criteria: &Criteria) {
        let mut best: Option<(usize, usize, &Path, LiteralRef<'_>)> = None;
        for (path, value) in criteria.equalities() {
            let Some(literal) = LiteralRef::of(value) else { continue };
            let known = self.paths.iter().find(|by| by.path == *path);
            let equal = known.and_then(|by| by.rules.get(&literal)).map_or(0, Vec::len);
            // Of paths alike that which most rules use, so that there are few paths to look up.
            let unused = usize::MAX - known.map_or(0, |by| by.count);
            if best.is_none_or(|(least, rarest, ..)| (equal, unused) < (least, rarest)) {
                best = Some((equal, unused, path, literal));
            }
        }
        let Some((.., path, literal)) = best else { return self.others.push(position) };
        let at = self.paths.iter().position(|by| by.path == *path).unwrap_or_else(|| {
            self.paths.push(ByValue { path: path.clone(), rules: IndexMap::default(), count: 0 });
            self.paths.len() - 1
        });
        if let Some(by) = self.paths.get_mut(at) {
            by.rules.entry(literal.to_owned()).or_default().push(position);
            by.count += 1;
        }
    }

    /// The positions of the rules that the payload can match, in order.
    pub(super) fn candidates(&self, payload: &Value) -> Candidates<'_> {
        let mut found: Vec<&[u32]> = Vec::new();
        for by in &self.paths {
            let value = by.path.first(payload).ok().flatten();
            let rules = value.as_deref().and_then(LiteralRef::of).and_then(|literal| by.rules.get(&literal));
            found.extend(rules.map(Vec::as_slice));
        }
        if found.is_empty() {
            return Candidates::Others(self.others.iter());
        }
        found.push(&self.others);
        let mut positions = found.concat();
        positions.sort_unstable();
        Candidates::Found(positions.into_iter())
    }
}

/// Positions of rules, in order.
pub(super) enum Candidates<'i> {
    Others(std::slice::Iter<'i, u32>),
    Found(std::vec::IntoIter<u32>),
}

impl Iterator for Candidates<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        match self {
            Candidates::Others(positions) => positions.next().copied(),
            Candidates::Found(positions) => positions.next(),
        }
    }
}

impl<'v> LiteralRef<'v> {
    fn of(value: &'v Value) -> Option<LiteralRef<'v>> {
        match value {
            Value::String(text) => Some(LiteralRef::Text(text)),
            Value::Bool(value) => Some(LiteralRef::Int(i64::from(*value))),
            Value::Int(number) => Some(LiteralRef::Int(*number)),
            // Whole floats of 64 bits equal a whole number; others only themselves.
            Value::Float(number)
                if number.trunc() == *number && number.abs() < 9_223_372_036_854_775_808.0 =>
            {
                Some(LiteralRef::Int(*number as i64))
            }
            Value::Float(number) if *number == -9_223_372_036_854_775_808.0 => {
                Some(LiteralRef::Int(i64::MIN))
            }
            Value::Float(number) => Some(LiteralRef::Float(number.to_bits())),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    fn to_owned(self) -> Literal {
        match self {
            LiteralRef::Text(text) => Literal::Text(text.to_owned()),
            LiteralRef::Int(number) => Literal::Int(number),
            LiteralRef::Float(bits) => Literal::Float(bits),
        }
    }
}

impl Literal {
    fn by_ref(&self) -> LiteralRef<'_> {
        match self {
            Literal::Text(text) => LiteralRef::Text(text),
            Literal::Int(number) => LiteralRef::Int(*number),
            Literal::Float(bits) => LiteralRef::Float(*bits),
        }
    }
}

impl Hash for LiteralRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            LiteralRef::Text(text) => text.hash(state),
            LiteralRef::Int(number) => number.hash(state),
            LiteralRef::Float(bits) => bits.hash(state),
        }
    }
}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.by_ref().hash(state);
    }
}

impl Equivalent<Literal> for LiteralRef<'_> {
    fn equivalent(&self, key: &Literal) -> bool {
        *self == key.by_ref()
    }
}
