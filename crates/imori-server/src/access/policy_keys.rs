//! Policy keys, including RabbitMQ's keys that no queue argument has.

use imori_core::arguments::{PolicyKey, Takes, find_policy_key};

/// A policy key, and the values that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub(super) takes: Takes,
    /// Operator policies may have it too.
    pub(super) is_limit: bool,
    /// The queue argument's key and its effect; `None` if no queue argument has this key.
    pub(super) argument: Option<&'static PolicyKey>,
}

/// The key that names the exchange for messages that match no binding.
pub(super) const ALTERNATE_EXCHANGE: &str = "alternate-exchange";

/// Finds the key of this name.
pub(super) fn find(name: &str) -> Option<Key> {
    if let Some((argument, key)) = find_policy_key(name) {
        return Some(Key { takes: argument.takes, is_limit: key.is_limit, argument: Some(key) });
    }
    let (_, takes, is_limit) = KEYS.into_iter().find(|(known, ..)| *known == name)?;
    Some(Key { takes, is_limit, argument: None })
}

impl Key {
    /// Whether this broker acts on the key.
    pub(super) fn has_effect(self, name: &str) -> bool {
        name == ALTERNATE_EXCHANGE || self.argument.is_some_and(|key| key.effect.is_some())
    }
}

/// The keys that no queue argument has: name, values, and whether operator policies may have them.
const KEYS: [(&str, Takes, bool); 15] = [
    (ALTERNATE_EXCHANGE, Takes::Name, false),
    ("target-group-size", Takes::Whole { min: 1, max: i64::MAX }, true),
    // Mirrored queues had these up to RabbitMQ 3.
    ("ha-mode", Takes::Anything, true),
    ("ha-params", Takes::Anything, true),
    ("ha-sync-mode", Takes::Anything, true),
    ("ha-sync-batch-size", Takes::Anything, true),
    ("ha-promote-on-shutdown", Takes::Anything, true),
    ("ha-promote-on-failure", Takes::Anything, true),
    // Plugins have these.
    ("federation-upstream", Takes::Anything, false),
    ("federation-upstream-pattern", Takes::Anything, false),
    ("federation-upstream-set", Takes::Anything, false),
    ("selector-fields", Takes::Anything, false),
    ("selector-field-max-bytes", Takes::Anything, false),
    ("shards-per-node", Takes::Anything, false),
    ("routing-key", Takes::Anything, false),
];
