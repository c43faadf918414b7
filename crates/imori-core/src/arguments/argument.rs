//! A row of the table: an argument's name, values, setting and policy key.

use std::fmt;

use super::takes::{Taken, Takes};
use crate::message::Value;
use crate::policy::{PolicySettings, QueueKind, Source};
use crate::queue::{QueueSettings, Sources};

/// An argument of a queue's declaration.
///
/// A later declaration of the same queue has to give each argument again.
pub struct Argument {
    /// The name, as RabbitMQ's clients write it.
    pub name: &'static str,
    /// Its effect, in one line for people; empty for an argument without effect.
    pub about: &'static str,
    /// The type and range of its value.
    pub takes: Takes,
    /// The kinds of queues that have it; none for an argument of streams.
    pub kinds: &'static [QueueKind],
    /// The policy key that sets the same, if there is one.
    pub policy: Option<PolicyKey>,
    pub(super) setting: Option<Setting>,
}

/// The setting that an argument reads and writes. The others are checked and kept, and have no effect.
pub(super) struct Setting {
    /// Writes a value that [`Takes::check`] has accepted.
    pub(super) set: fn(&mut QueueSettings, Taken<'_>),
    /// Returns the value that a declaration has to give; `None` for the default.
    pub(super) get: fn(&QueueSettings) -> Option<Value<'static>>,
}

/// A key that policies may set, and its effect.
pub struct PolicyKey {
    /// The key, as RabbitMQ writes it.
    pub name: &'static str,
    /// Whether operator policies may have it too.
    pub is_limit: bool,
    /// The setting of a policy; `None` for a key that is checked and has no effect.
    pub effect: Option<PolicyEffect>,
}

/// The effect of a policy key.
pub struct PolicyEffect {
    /// Writes a value that [`Takes::check`] has accepted.
    pub set: fn(&mut PolicySettings, Taken<'_>),
    /// Returns where the setting in effect comes from.
    pub source: fn(&Sources) -> Source,
}

const BOTH: &[QueueKind] = &[QueueKind::Classic, QueueKind::Quorum];

impl Argument {
    /// An argument of both kinds of queues that is checked, kept and compared, and has no effect.
    pub(super) const fn noted(name: &'static str, takes: Takes) -> Argument {
        Argument { name, about: "", takes, kinds: BOTH, policy: None, setting: None }
    }

    /// An argument of both kinds of queues with a setting.
    pub(super) const fn setting(
        (name, about): (&'static str, &'static str),
        takes: Takes,
        set: fn(&mut QueueSettings, Taken<'_>),
        get: fn(&QueueSettings) -> Option<Value<'static>>,
    ) -> Argument {
        Argument { name, about, takes, kinds: BOTH, policy: None, setting: Some(Setting { set, get }) }
    }

    pub(super) const fn of(self, kinds: &'static [QueueKind]) -> Argument {
        Argument { kinds, ..self }
    }

    /// Adds a policy key that sets the same.
    pub(super) const fn policy(
        self,
        (name, is_limit): (&'static str, bool),
        set: fn(&mut PolicySettings, Taken<'_>),
        source: fn(&Sources) -> Source,
    ) -> Argument {
        let effect = Some(PolicyEffect { set, source });
        Argument { policy: Some(PolicyKey { name, is_limit, effect }), ..self }
    }

    /// Adds a policy key without effect.
    pub(super) const fn noted_policy(self, name: &'static str, is_limit: bool) -> Argument {
        Argument { policy: Some(PolicyKey { name, is_limit, effect: None }), ..self }
    }

    /// Whether the argument changes what a queue does.
    pub fn has_effect(&self) -> bool {
        self.setting.is_some()
    }

    /// Returns the value that a declaration of a queue with these settings has to give.
    pub fn value(&self, settings: &QueueSettings) -> Option<Value<'static>> {
        match &self.setting {
            Some(setting) => (setting.get)(settings),
            None => {
                let mut others = settings.others.entries().iter();
                let (_, value) = others.find(|(name, _)| name.as_bytes() == self.name.as_bytes())?;
                Some(value.clone())
            }
        }
    }
}

impl fmt::Debug for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Argument").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for PolicyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyKey").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for PolicyEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyEffect").finish_non_exhaustive()
    }
}
