//! The settings of a queue that are in effect, and the source of each.

use std::sync::Arc;

use imori_core::arguments::QUEUE_ARGUMENTS;
use imori_core::policy::{Matched, Policy, Source};
use imori_core::queue::{QueueSettings, in_effect};
use imori_server::access::{PolicyKind, SetPolicy};
use imori_server::broker::Broker;
use imori_server::json_value::shown as value_shown;
use serde_json::{Value, json};

/// The fields of a queue's row that show its policies, by RabbitMQ's names.
pub(crate) fn policy_fields(broker: &Broker, vhost: &str, matched: &Matched) -> [(&'static str, Value); 3] {
    let name = |policy: &Option<Arc<Policy>>| policy.as_ref().map(|policy| policy.name.to_string());
    let (policy, operator) = (name(&matched.policy), name(&matched.operator));
    let set = |kind, name: &Option<String>| {
        name.as_ref().and_then(|name| broker.access().policy((kind, vhost, name)))
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
    /// The setting's name in policies.
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    /// Its source: `default`, `argument`, `policy NAME` or `operator policy NAME`.
    pub(crate) source: String,
}

/// The settings in effect, each with its source.
pub(crate) fn sources(declared: &QueueSettings, matched: &Matched) -> Vec<InEffect> {
    let (settings, sources) = in_effect(declared, matched);
    let in_effect = QUEUE_ARGUMENTS.iter().filter_map(|argument| {
        let key = argument.policy.as_ref()?;
        let source = (key.effect.as_ref()?.source)(&sources);
        let value = match key.name {
            // Both settings have a default. No limit is shown as null.
            "overflow" => json!(settings.overflow.name()),
            "delivery-limit" => json!(settings.delivery_limit),
            _ => argument.value(&settings).map_or(Value::Null, |value| value_shown(&value)),
        };
        Some(InEffect { key: key.name, value, source: shown(source, matched) })
    });
    in_effect.collect()
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
