//! Bindings, which link a key of an exchange to a target, and the sets that store them.
//!
//! Two bindings of an exchange are the same if key, arguments and target are equal; binding again
//! changes nothing.

use std::sync::Arc;

use super::arguments::Arguments;
use super::hamt::{Hamt, Seed};
use super::pattern::Syntax;
use super::target::Target;
use crate::name::Name;

/// The key of a binding as the client wrote it, and the syntax in which a topic exchange reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BindingKey {
    /// The syntax of its wildcards.
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

/// A binding, as seen from its exchange.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binding<'a> {
    /// The key; a topic exchange shows it in the syntax of AMQP.
    pub key: &'a [u8],
    /// Conditions on headers, and arguments that are kept and compared only.
    pub arguments: &'a Arguments,
    /// The target that receives the messages.
    pub target: &'a Target,
}

/// A target, with the parts that distinguish its binding from others filed under the same key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bound {
    pub(crate) target: Target,
    extra: Option<Arc<Extra>>,
}

/// The parts of a binding that few bindings have.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extra {
    /// The key, unless the binding's position in the exchange implies it.
    key: Option<Name>,
    arguments: Arguments,
}

static NO_ARGUMENTS: Arguments = Arguments::NONE;

impl Bound {
    pub(crate) fn new(target: &Target, key: Option<&Name>, arguments: &Arguments) -> Bound {
        let is_plain = key.is_none() && arguments.is_empty();
        let extra = || Arc::new(Extra { key: key.cloned(), arguments: arguments.clone() });
        Bound { target: target.clone(), extra: (!is_plain).then(extra) }
    }

    pub(crate) fn arguments(&self) -> &Arguments {
        self.extra.as_ref().map_or(&NO_ARGUMENTS, |extra| &extra.arguments)
    }

    /// This binding as its exchange shows it; `key` is the key that its position implies.
    pub(crate) fn binding<'a>(&'a self, key: &'a [u8]) -> Binding<'a> {
        let own = self.extra.as_ref().and_then(|extra| extra.key.as_ref());
        Binding { key: own.map_or(key, Name::as_bytes), arguments: self.arguments(), target: &self.target }
    }
}

/// The bindings under one key: usually one, sometimes a million.
#[derive(Debug, Default, Clone)]
pub(crate) enum Targets {
    #[default]
    None,
    One(Bound),
    Set(Hamt<Bound, ()>),
}

impl Targets {
    /// Adds a binding; returns whether it is new.
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

    /// Removes a binding; returns whether it was present.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscription_needs_few_bytes() {
        assert_eq!(size_of::<Bound>(), 48);
        assert_eq!(size_of::<Targets>(), 48);
    }
}
