//! Bindings: what ties a key of an exchange to a target, and the sets they are kept in.
//!
//! Two bindings of an exchange are the same if key, arguments and target are; binding again
//! changes nothing.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::hamt::{Hamt, Seed};
use super::pattern::Syntax;
use super::target::Target;
use crate::message::Value;
use crate::name::Name;

/// The key of a binding as the client wrote it, and how a topic exchange is to read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BindingKey {
    /// How wildcards are written.
    pub syntax: Syntax,
    /// The key itself.
    pub text: Name,
}

impl BindingKey {
    /// A key of `syntax`.
    pub fn new(syntax: Syntax, text: &[u8]) -> BindingKey {
        BindingKey { syntax, text: Name::new(text) }
    }
}

/// Arguments of a binding, sorted by name. Those of headers exchanges decide what matches.
#[derive(Debug, Default, Clone)]
pub struct Arguments {
    /// Nothing, so that the usual binding costs nothing.
    list: Option<Arc<ArgumentList>>,
}

#[derive(Debug)]
struct ArgumentList {
    entries: Vec<(Name, Value<'static>)>,
    /// The entries as bytes: what makes two lists equal, fractions and all.
    identity: Vec<u8>,
}

impl Arguments {
    /// Arguments from names and values; of a repeated name the first counts.
    pub fn new(entries: impl IntoIterator<Item = (Name, Value<'static>)>) -> Arguments {
        let mut entries: Vec<_> = entries.into_iter().collect();
        if entries.is_empty() {
            return Arguments::default();
        }
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        entries.dedup_by(|(later, _), (earlier, _)| later == earlier);
        let mut identity = Vec::new();
        for (name, value) in &entries {
            push_bytes(&mut identity, name.as_bytes());
            push_value(&mut identity, value);
        }
        Arguments { list: Some(Arc::new(ArgumentList { entries, identity })) }
    }

    /// The names and values, sorted by name.
    pub fn entries(&self) -> &[(Name, Value<'static>)] {
        self.list.as_ref().map(|list| list.entries.as_slice()).unwrap_or_default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_none()
    }

    fn identity(&self) -> &[u8] {
        self.list.as_ref().map(|list| list.identity.as_slice()).unwrap_or_default()
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Arguments) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Arguments {}

impl Hash for Arguments {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// One binding, as seen from its exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding<'a> {
    /// Its key; a topic exchange shows it in the syntax of AMQP.
    pub key: &'a [u8],
    /// Its arguments.
    pub arguments: &'a Arguments,
    /// What it leads to.
    pub target: &'a Target,
}

/// A target with what tells its binding from another of the same place in the exchange.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) target: Target,
    extra: Option<Arc<Extra>>,
}

/// What few bindings have.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extra {
    /// The key where its place does not tell it.
    key: Option<Name>,
    arguments: Arguments,
}

static NO_ARGUMENTS: Arguments = Arguments { list: None };

impl Bound {
    pub(crate) fn new(target: &Target, key: Option<&Name>, arguments: &Arguments) -> Bound {
        let is_plain = key.is_none() && arguments.is_empty();
        let extra = || Arc::new(Extra { key: key.cloned(), arguments: arguments.clone() });
        Bound { target: target.clone(), extra: (!is_plain).then(extra) }
    }

    pub(crate) fn arguments(&self) -> &Arguments {
        self.extra.as_ref().map_or(&NO_ARGUMENTS, |extra| &extra.arguments)
    }

    /// The binding, whose place in the exchange stands for `key`.
    pub(crate) fn binding<'a>(&'a self, key: &'a [u8]) -> Binding<'a> {
        let own = self.extra.as_ref().and_then(|extra| extra.key.as_ref());
        Binding { key: own.map_or(key, Name::as_bytes), arguments: self.arguments(), target: &self.target }
    }
}

/// The bindings of one place: usually one, sometimes a million.
#[derive(Debug, Default, Clone)]
pub(crate) enum Targets {
    #[default]
    None,
    One(Bound),
    Set(Hamt<Bound, ()>),
}

impl Targets {
    /// Adds a binding; says whether it is new.
    pub(crate) fn insert(&mut self, seed: Seed, bound: Bound) -> bool {
        match self {
            Targets::None => *self = Targets::One(bound),
            Targets::One(first) if *first == bound => return false,
            Targets::One(first) => {
                let mut set = Hamt::default();
                set.insert(seed, first.clone(), ());
                set.insert(seed, bound, ());
                *self = Targets::Set(set);
            }
            Targets::Set(set) => return set.insert(seed, bound, ()).is_none(),
        }
        true
    }

    /// Takes a binding out; says whether it was there.
    pub(crate) fn remove(&mut self, seed: Seed, bound: &Bound) -> bool {
        match self {
            Targets::One(first) if first == bound => *self = Targets::None,
            Targets::None | Targets::One(_) => return false,
            Targets::Set(set) => {
                if !set.remove(seed, bound) {
                    return false;
                }
                let mut rest = set.iter();
                if let (Some((last, ())), None) = (rest.next(), rest.next()) {
                    *self = Targets::One(last.clone());
                }
            }
        }
        true
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Targets::None)
    }

    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&Bound)) {
        match self {
            Targets::None => {}
            Targets::One(bound) => visit(bound),
            Targets::Set(set) => set.iter().for_each(|(bound, ())| visit(bound)),
        }
    }
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn push_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Value::Int(value) => {
            out.push(2);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Uint(value) => {
            out.push(3);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Float(value) => {
            out.push(4);
            out.extend_from_slice(&value.to_bits().to_be_bytes());
        }
        Value::Timestamp(value) => {
            out.push(5);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Text(bytes) => {
            out.push(6);
            push_bytes(out, bytes);
        }
        Value::Binary(bytes) => {
            out.push(7);
            push_bytes(out, bytes);
        }
        Value::List(values) => {
            out.push(8);
            out.extend_from_slice(&(values.len() as u64).to_be_bytes());
            values.iter().for_each(|value| push_value(out, value));
        }
        Value::Map(entries) => {
            out.push(9);
            out.extend_from_slice(&(entries.len() as u64).to_be_bytes());
            for (name, value) in entries {
                push_bytes(out, name);
                push_value(out, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_equal_whatever_their_order() {
        let one = ("a".into(), Value::Int(1));
        let two = ("b".into(), Value::Float(f64::NAN));
        let rising = Arguments::new([one.clone(), two.clone()]);
        assert_eq!(rising, Arguments::new([two.clone(), one.clone()]));
        assert_ne!(rising, Arguments::new([one]));
        assert_ne!(Arguments::default(), Arguments::new([two]));
        assert_eq!(Arguments::default(), Arguments::new([]));
    }

    #[test]
    fn a_subscription_needs_few_bytes() {
        assert_eq!(size_of::<Bound>(), 48);
        assert_eq!(size_of::<Targets>(), 48);
    }
}
