//! The keys of policies that RabbitMQ knows, and what each may be.

use std::fmt;

use serde_json::Value;

use crate::limits::OBJECT_NAME_BYTES_MAX;

/// A key of a policy.
#[derive(Debug)]
pub(super) struct Key {
    name: &'static str,
    /// The values that it takes.
    pub(super) check: Check,
    /// This broker acts on it.
    pub(super) has_effect: bool,
    /// Operator policies may have it too.
    is_limit: bool,
}

/// The values that a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// A whole number within bounds.
    Number(i64, i64),
    /// A name.
    Name,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Anything: RabbitMQ's plugins or its earlier releases check it.
    Anything,
}

impl Check {
    /// Tells whether a key may have this value.
    pub(super) fn takes(self, value: &Value) -> bool {
        match self {
            Check::Number(min, max) => value.as_i64().is_some_and(|value| (min..=max).contains(&value)),
            Check::Name => value.as_str().is_some_and(|name| name.len() <= OBJECT_NAME_BYTES_MAX),
            Check::Words(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Check::Anything => true,
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Check::Number(i64::MIN, _) => f.write_str("a whole number"),
            Check::Number(min, i64::MAX) => write!(f, "a whole number from {min}"),
            Check::Number(min, max) => write!(f, "a whole number from {min} to {max}"),
            Check::Name => write!(f, "a name of at most {OBJECT_NAME_BYTES_MAX} bytes"),
            Check::Words(words) => write!(f, "`{}`", words.join("`, `")),
            Check::Anything => f.write_str("anything"),
        }
    }
}

const NATURAL: Check = Check::Number(0, i64::MAX);
const POSITIVE: Check = Check::Number(1, i64::MAX);

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Tells whether operator policies may have a key.
pub(super) fn is_known_to_operators(name: &str) -> bool {
    find(name).is_some_and(|key| key.is_limit)
}

/// A key on which this broker acts.
const fn acts(name: &'static str, check: Check) -> Key {
    Key { name, check, has_effect: true, is_limit: false }
}

/// A key on which this broker acts, in operator policies too.
const fn limits(name: &'static str, check: Check) -> Key {
    Key { name, check, has_effect: true, is_limit: true }
}

/// A key that means nothing here.
const fn noted(name: &'static str, check: Check) -> Key {
    Key { name, check, has_effect: false, is_limit: false }
}

/// A key that means nothing here, in operator policies too.
const fn noted_limit(name: &'static str, check: Check) -> Key {
    Key { name, check, has_effect: false, is_limit: true }
}

const KEYS: [Key; 40] = [
    limits("message-ttl", NATURAL),
    limits("expires", POSITIVE),
    limits("max-length", NATURAL),
    limits("max-length-bytes", NATURAL),
    limits("overflow", Check::Words(&["drop-head", "reject-publish", "reject-publish-dlx"])),
    limits("delivery-limit", Check::Number(i64::MIN, i64::MAX)),
    acts("dead-letter-exchange", Check::Name),
    acts("dead-letter-routing-key", Check::Name),
    acts("alternate-exchange", Check::Name),
    noted("dead-letter-strategy", Check::Words(&["at-most-once", "at-least-once"])),
    noted("consumer-timeout", NATURAL),
    noted("consumer-disconnected-timeout", NATURAL),
    noted("queue-mode", Check::Words(&["default", "lazy"])),
    noted_limit("queue-version", Check::Number(1, 2)),
    noted_limit("max-in-memory-length", NATURAL),
    noted_limit("max-in-memory-bytes", NATURAL),
    noted_limit("target-group-size", POSITIVE),
    noted_limit("member-placement-tag", Check::Anything),
    noted_limit("delayed-retry-type", Check::Anything),
    noted_limit("delayed-retry-min", Check::Anything),
    noted_limit("delayed-retry-max", Check::Anything),
    noted_limit("queue-master-locator", Check::Anything),
    noted("queue-leader-locator", Check::Words(&["client-local", "balanced", "random", "least-leaders"])),
    noted("initial-cluster-size", NATURAL),
    // Streams have these.
    noted("max-age", Check::Anything),
    noted("stream-max-segment-size-bytes", NATURAL),
    noted("stream-filter-size-bytes", Check::Number(16, 255)),
    // Mirrored queues had these up to RabbitMQ 3.
    noted_limit("ha-mode", Check::Anything),
    noted_limit("ha-params", Check::Anything),
    noted_limit("ha-sync-mode", Check::Anything),
    noted_limit("ha-sync-batch-size", Check::Anything),
    noted_limit("ha-promote-on-shutdown", Check::Anything),
    noted_limit("ha-promote-on-failure", Check::Anything),
    // Plugins have these.
    noted("federation-upstream", Check::Anything),
    noted("federation-upstream-pattern", Check::Anything),
    noted("federation-upstream-set", Check::Anything),
    noted("selector-fields", Check::Anything),
    noted("selector-field-max-bytes", Check::Anything),
    noted("shards-per-node", Check::Anything),
    noted("routing-key", Check::Anything),
];
