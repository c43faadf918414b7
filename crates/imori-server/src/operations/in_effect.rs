//! The settings of a queue that are in effect, and where each comes from.

use std::sync::Arc;

use imori_core::policy::{Matched, Overflow, Policy, Source};
use imori_core::queue::{QueueSettings, in_effect};
use serde_json::{Value, json};

use crate::access::{PolicyKind, SetPolicy};
use crate::clock::millis;
use crate::requests::administered::Administered;

/// Fields of a queue's row on the policies that act on it, by RabbitMQ's names.
pub(crate) fn policy_fields(
    broker: &Administered,
    vhost: &str,
    matched: &Matched,
) -> [(&'static str, Value); 3] {
    let name = |policy: &Option<Arc<Policy>>| policy.as_ref().map(|policy| policy.name.to_string());
    let (policy, operator) = (name(&matched.policy), name(&matched.operator));
    let set = |kind, name: &Option<String>| {
        name.as_ref().and_then(|name| broker.shared.access.policy((kind, vhost, name)))
    };
    let (own, operators) = (set(PolicyKind::Policy, &policy), set(PolicyKind::Operator, &operator));
    let merged = SetPolicy::merged(own.as_deref(), operators.as_deref());
    [
        ("policy", json!(policy)),
        ("operator_policy", json!(operator)),
        ("effective_policy_definition", json!(merged)),
    ]
}

/// A setting in effect.
#[derive(Debug)]
pub(crate) struct InEffect {
    /// Its name in policies.
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// Where it comes from: `default`, `argument`, `policy NAME` or `operator policy NAME`.
    pub(crate) source: String,
}

/// The settings in effect, each with its source.
pub(crate) fn sources(declared: &QueueSettings, matched: &Matched) -> Vec<InEffect> {
    let (settings, sources) = in_effect(declared, matched);
    let milliseconds = |duration: Option<std::time::Duration>| json!(duration.map(millis));
    let target = settings.dead_letter.as_ref();
    let overflow = match settings.overflow {
        Overflow::DropHead => "drop-head",
        Overflow::RejectPublish => "reject-publish",
        Overflow::RejectPublishDeadLetter => "reject-publish-dlx",
    };
    let exchange = target.map(|target| target.exchange.to_string());
    let routing_key = target.and_then(|target| target.routing_key.as_ref()).map(ToString::to_string);
    let rows = [
        ("message-ttl", milliseconds(settings.message_ttl), sources.message_ttl),
        ("expires", milliseconds(settings.expires), sources.expires),
        ("max-length", json!(settings.length_max), sources.length_max),
        ("max-length-bytes", json!(settings.length_bytes_max), sources.length_bytes_max),
        ("overflow", json!(overflow), sources.overflow),
        ("dead-letter-exchange", json!(exchange), sources.dead_letter_exchange),
        ("dead-letter-routing-key", json!(routing_key), sources.dead_letter_routing_key),
        ("delivery-limit", json!(settings.delivery_limit), sources.delivery_limit),
    ];
    rows.into_iter()
        .map(|(key, value, source)| InEffect { key, value, source: shown(source, matched) })
        .collect()
}

/// A source in words: `default`, `argument`, `policy NAME` or `operator policy NAME`.
fn shown(source: Source, matched: &Matched) -> String {
    let named = |kind: PolicyKind, policy: &Option<Arc<Policy>>| {
        let name = policy.as_ref().map(|policy| policy.name.to_string()).unwrap_or_default();
        format!("{} {name}", kind.word())
    };
    match source {
        Source::Default => String::from("default"),
        Source::Argument => String::from("argument"),
        Source::Policy => named(PolicyKind::Policy, &matched.policy),
        Source::OperatorPolicy => named(PolicyKind::Operator, &matched.operator),
    }
}
