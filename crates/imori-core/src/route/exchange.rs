//! Exchanges: named routing tables of four kinds.

use std::fmt;

use super::arguments::Arguments;
use super::binding::{Binding, BindingKey, Bound, Targets};
use super::hamt::{Hamt, Seed};
use super::header::{self, Headers, SortedHeaders};
use super::pattern::{self, Pattern, PatternError};
use super::target::Target;
use super::trie::Trie;
use crate::name::Name;
use crate::policy::Matched;

/// The rule by which an exchange chooses among its bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExchangeKind {
    /// Bindings with the subject as key.
    Direct,
    /// All bindings.
    Fanout,
    /// Bindings with a pattern as key that matches the subject.
    Topic,
    /// Bindings with arguments that match the headers of the message.
    Headers,
}

impl ExchangeKind {
    /// The name of the kind, as the protocols write it.
    pub fn name(self) -> &'static str {
        match self {
            ExchangeKind::Direct => "direct",
            ExchangeKind::Fanout => "fanout",
            ExchangeKind::Topic => "topic",
            ExchangeKind::Headers => "headers",
        }
    }
}

/// The settings of an exchange, beside its name and kind.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whether the exchange outlives the broker.
    pub is_durable: bool,
    /// Whether the exchange is deleted with its last binding.
    pub is_auto_delete: bool,
    /// Whether only other exchanges may route to it; clients cannot publish.
    pub is_internal: bool,
    /// The exchange that receives messages which no binding takes.
    pub alternate: Option<Name>,
    /// Whether messages sent to it may ask for a delay before delivery. The publishing protocol
    /// reads the delay from the message and checks this flag.
    pub is_delayed: bool,
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_durable { "durable" } else { "transient" })?;
        if self.is_auto_delete {
            f.write_str(", auto-delete")?;
        }
        if self.is_internal {
            f.write_str(", internal")?;
        }
        if self.is_delayed {
            f.write_str(", delayed")?;
        }
        match &self.alternate {
            Some(name) => write!(f, ", with alternate exchange `{name}`"),
            None => Ok(()),
        }
    }
}

/// A named routing table.
#[derive(Debug, Clone)]
pub struct Exchange {
    name: Name,
    kind: ExchangeKind,
    settings: Settings,
    /// The policies that act on it.
    matched: Matched,
    bindings: Bindings,
}

/// An auto-delete exchange that was deleted with its last binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AutoDeleted {
    /// The name that the exchange had.
    pub name: Name,
    /// Whether the exchange was durable.
    pub is_durable: bool,
}

/// The reason why a binding key or its arguments are invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyError {
    Pattern(PatternError),
    UnknownMatch,
}

#[derive(Debug, Clone)]
enum Bindings {
    Direct(Hamt<Name, Targets>),
    Fanout(Targets),
    Topic(Trie),
    Headers(Targets),
}

impl Exchange {
    pub(crate) fn new(name: Name, kind: ExchangeKind, settings: Settings) -> Exchange {
        let bindings = match kind {
            ExchangeKind::Direct => Bindings::Direct(Hamt::default()),
            ExchangeKind::Fanout => Bindings::Fanout(Targets::None),
            ExchangeKind::Topic => Bindings::Topic(Trie::default()),
            ExchangeKind::Headers => Bindings::Headers(Targets::None),
        };
        Exchange { name, kind, settings, matched: Matched::default(), bindings }
    }

    /// The name; empty for the default exchange.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The kind, which decides how it routes.
    pub fn kind(&self) -> ExchangeKind {
        self.kind
    }

    /// The settings it was declared with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The policies that act on it.
    pub fn matched(&self) -> &Matched {
        &self.matched
    }

    /// The exchange that receives messages which no binding takes: as declared, or else as the
    /// policy says.
    pub fn alternate(&self) -> Option<Name> {
        let declared = self.settings.alternate.clone();
        self.matched.unless_said(declared, |policy| policy.alternate_exchange.clone()).0
    }

    /// Replaces the policies that act on this exchange.
    pub(crate) fn govern(&mut self, matched: Matched) {
        self.matched = matched;
    }

    /// Whether the exchange has no bindings. The default exchange has none: its routes are implied.
    pub fn is_empty(&self) -> bool {
        match &self.bindings {
            Bindings::Direct(keys) => keys.is_empty(),
            Bindings::Topic(trie) => trie.is_empty(),
            Bindings::Fanout(targets) | Bindings::Headers(targets) => targets.is_empty(),
        }
    }

    /// Calls `visit` with each binding.
    pub fn for_each_binding(&self, visit: &mut dyn FnMut(Binding<'_>)) {
        match &self.bindings {
            Bindings::Topic(trie) => trie.for_each(visit),
            Bindings::Fanout(targets) | Bindings::Headers(targets) => {
                targets.for_each(&mut |bound| visit(bound.binding(b"")));
            }
            Bindings::Direct(keys) => {
                for (key, targets) in keys {
                    targets.for_each(&mut |bound| visit(bound.binding(key.as_bytes())));
                }
            }
        }
    }

    /// Adds a binding; returns whether it is new.
    pub(crate) fn bind(
        &mut self,
        seed: Seed,
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<bool, KeyError> {
        match &mut self.bindings {
            Bindings::Topic(trie) => {
                let pattern = parsed(key)?;
                Ok(trie.insert(seed, &pattern, topic_bound(&pattern, key, arguments, target)))
            }
            Bindings::Fanout(targets) => Ok(targets.insert(seed, keyed_bound(key, arguments, target))),
            Bindings::Headers(targets) => {
                header::check_match(arguments).map_err(|_| KeyError::UnknownMatch)?;
                Ok(targets.insert(seed, keyed_bound(key, arguments, target)))
            }
            Bindings::Direct(keys) => {
                pattern::check_bytes(key.text.as_bytes()).map_err(KeyError::Pattern)?;
                let bound = Bound::new(target, None, arguments);
                match keys.get_mut(seed, &key.text) {
                    Some(targets) => Ok(targets.insert(seed, bound)),
                    None => Ok(keys.insert(seed, key.text.clone(), Targets::One(bound)).is_none()),
                }
            }
        }
    }

    /// Removes a binding; returns whether it was present.
    pub(crate) fn unbind(
        &mut self,
        seed: Seed,
        key: &BindingKey,
        arguments: &Arguments,
        target: &Target,
    ) -> Result<bool, KeyError> {
        match &mut self.bindings {
            Bindings::Topic(trie) => {
                let pattern = parsed(key)?;
                Ok(trie.remove(seed, &pattern, &topic_bound(&pattern, key, arguments, target)))
            }
            Bindings::Fanout(targets) | Bindings::Headers(targets) => {
                Ok(targets.remove(seed, &keyed_bound(key, arguments, target)))
            }
            Bindings::Direct(keys) => {
                let Some(targets) = keys.get_mut(seed, &key.text) else {
                    return Ok(false);
                };
                let removed = targets.remove(seed, &Bound::new(target, None, arguments));
                if targets.is_empty() {
                    keys.remove(seed, &key.text);
                }
                Ok(removed)
            }
        }
    }

    /// Calls `found` with the target of each binding that takes the message; a target may be found
    /// more than once. Returns whether a different last token of the subject could match
    /// differently.
    pub(crate) fn matches(
        &self,
        seed: Seed,
        subject: &[u8],
        headers: &dyn Headers,
        found: &mut dyn FnMut(&Target),
    ) -> Result<bool, PatternError> {
        let mut each = |targets: &Targets| targets.for_each(&mut |bound| found(&bound.target));
        match &self.bindings {
            Bindings::Topic(trie) => {
                pattern::check_subject(subject)?;
                Ok(trie.matches(seed, subject, &mut each).asks_last)
            }
            Bindings::Fanout(targets) => {
                each(targets);
                Ok(false)
            }
            Bindings::Direct(keys) => {
                if let Some(targets) = keys.get(seed, subject) {
                    each(targets);
                }
                Ok(!keys.is_empty())
            }
            Bindings::Headers(targets) if targets.is_empty() => Ok(false),
            Bindings::Headers(targets) => {
                let headers = SortedHeaders::new(headers);
                targets.for_each(&mut |bound| {
                    if headers.is_match(bound.arguments()) {
                        found(&bound.target);
                    }
                });
                Ok(false)
            }
        }
    }
}

fn parsed(key: &BindingKey) -> Result<Pattern, KeyError> {
    Pattern::parse(key.syntax, &key.text).map_err(KeyError::Pattern)
}

/// A binding of a topic exchange. It stores its key only if the key was normalised; otherwise its
/// position in the trie implies the key.
fn topic_bound(pattern: &Pattern, key: &BindingKey, arguments: &Arguments, target: &Target) -> Bound {
    Bound::new(target, pattern.is_normalised().then_some(&key.text), arguments)
}

/// A binding that stores its key, which takes no part in matching but distinguishes it from others.
fn keyed_bound(key: &BindingKey, arguments: &Arguments, target: &Target) -> Bound {
    let key = Some(&key.text).filter(|text| !text.as_bytes().is_empty());
    Bound::new(target, key, arguments)
}
