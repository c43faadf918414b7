//! Exchanges and bindings: reads the routing table, and changes it for operators.

use imori_core::arguments::{arguments_of_exchange, declared_kind};
use imori_core::id::VhostId;
use imori_core::internal::Verb;
use imori_core::name::Name;
use imori_core::route::{Arguments as BindingArguments, Exchange, Table, Target};
use imori_server::broker::Broker;
use imori_server::json_value::shown;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::queues::queue_ids;
use super::vhost_operator::VhostOperator;
use crate::http::rest_at;
use crate::objects::declaration::{BindingDeclaration, Declaration, Ends};
use crate::objects::operation_error::OperationError;

/// The default exchange's name in a URL path.
pub(crate) const DEFAULT_EXCHANGE: &str = "amq.default";

/// The facts about an exchange that the admin APIs show.
pub(crate) struct ExchangeFacts {
    pub(crate) name: String,
    pub(crate) vhost: String,
    /// The kind, by RabbitMQ's name.
    pub(crate) kind: &'static str,
    pub(crate) is_durable: bool,
    pub(crate) is_auto_delete: bool,
    pub(crate) is_internal: bool,
    pub(crate) arguments: Map<String, Value>,
    /// The policy that matches it.
    pub(crate) policy: Option<String>,
}

impl ExchangeFacts {
    /// The facts of an exchange in a snapshot of the routing table.
    pub(crate) fn of(broker: &Broker, vhost: VhostId, exchange: &Exchange) -> ExchangeFacts {
        let (kind, settings) = (exchange.kind(), exchange.settings());
        let arguments = arguments_of_exchange(kind, settings);
        ExchangeFacts {
            name: exchange.name().to_string(),
            vhost: broker.vhost_name(vhost),
            kind: declared_kind(kind, settings),
            is_durable: settings.is_durable,
            is_auto_delete: settings.is_auto_delete,
            is_internal: settings.is_internal,
            arguments: arguments.map(|(name, value)| (name.to_owned(), shown(&value))).collect(),
            policy: exchange.matched().policy.as_ref().map(|policy| policy.name.to_string()),
        }
    }
}

/// A binding of the snapshot that the list was made from.
pub(crate) struct BindingKey {
    vhost: VhostId,
    pub(crate) source: Name,
    key: Name,
    arguments: BindingArguments,
    target: Target,
}

/// The facts about a binding that the admin APIs show.
#[derive(Debug, Clone)]
pub(crate) struct BindingFacts {
    pub(crate) source: String,
    pub(crate) vhost: String,
    pub(crate) destination: String,
    pub(crate) is_to_queue: bool,
    pub(crate) routing_key: String,
    pub(crate) arguments: Map<String, Value>,
    /// Tells it apart from other bindings between the same ends.
    pub(crate) properties_key: String,
}

impl BindingFacts {
    /// The facts of a binding; `None` if its queue is gone, or if it is a live subscription.
    pub(crate) fn of(broker: &Broker, binding: &BindingKey) -> Option<BindingFacts> {
        let (destination, is_to_queue) = match &binding.target {
            Target::Queue(id) => (broker.with_queue(*id, |queue| queue.name().to_string())?, true),
            Target::Exchange(name) => (name.to_string(), false),
            Target::Subscription(_) | Target::Member { .. } => return None,
        };
        let routing_key = binding.key.to_string();
        let entries = binding.arguments.entries().iter();
        let arguments = entries.map(|(name, value)| (name.to_string(), shown(value))).collect();
        Some(BindingFacts {
            source: binding.source.to_string(),
            vhost: broker.vhost_name(binding.vhost),
            destination,
            is_to_queue,
            properties_key: properties_key(&routing_key, &arguments),
            routing_key,
            arguments,
        })
    }
}

/// The bindings of these vhosts, including the implied ones of the default exchange, without live subscriptions.
pub(crate) async fn binding_keys(broker: &Broker, vhosts: &[VhostId]) -> Vec<BindingKey> {
    let table = broker.table();
    let mut keys = Vec::new();
    for vhost in vhosts {
        let implied = queue_ids(broker, &[*vhost]).into_iter();
        keys.extend(implied.map(|(name, id)| BindingKey {
            vhost: *vhost,
            source: Name::from(""),
            key: name,
            arguments: BindingArguments::NONE,
            target: Target::Queue(id),
        }));
        push_bindings(&table, *vhost, &mut keys).await;
    }
    keys
}

/// The bindings of a vhost that satisfy `is_meant`.
pub(crate) async fn bindings_where(
    broker: &Broker,
    vhost: VhostId,
    is_meant: impl Fn(&BindingFacts) -> bool,
) -> Vec<BindingFacts> {
    let keys = binding_keys(broker, &[vhost]).await;
    keys.iter().filter_map(|key| BindingFacts::of(broker, key)).filter(is_meant).collect()
}

async fn push_bindings(table: &Table, vhost: VhostId, keys: &mut Vec<BindingKey>) {
    for (index, exchange) in table.exchanges(vhost).enumerate() {
        exchange.for_each_binding(&mut |binding| {
            if matches!(binding.target, Target::Queue(_) | Target::Exchange(_)) {
                keys.push(BindingKey {
                    vhost,
                    source: exchange.name().clone(),
                    key: Name::new(binding.key),
                    arguments: binding.arguments.clone(),
                    target: binding.target.clone(),
                });
            }
        });
        rest_at(index).await;
    }
}

/// A key that tells apart bindings between the same ends: the percent-encoded routing key, followed by `~` and a digest
/// of the arguments, if any.
pub(crate) fn properties_key(key: &str, arguments: &Map<String, Value>) -> String {
    let mut text = String::from(if key.is_empty() { "~" } else { "" });
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => text.push(char::from(byte)),
            b' ' => text.push('+'),
            other => text += &format!("%{other:02X}"),
        }
    }
    if !arguments.is_empty() {
        let digest = Sha256::digest(Value::Object(arguments.clone()).to_string());
        text.push('~');
        digest.iter().take(8).for_each(|byte| text += &format!("{byte:02x}"));
    }
    text
}

impl Ends {
    /// Whether `binding` is between these ends.
    pub(crate) fn are_of(&self, binding: &BindingFacts) -> bool {
        binding.source == self.source
            && binding.destination == self.destination
            && binding.is_to_queue == self.is_to_queue
    }
}

impl VhostOperator {
    /// Declares a queue, an exchange or a binding; returns true if a queue or an exchange is new, and always for a
    /// binding.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn declare(&self, declaration: Declaration) -> Result<bool, OperationError> {
        let is_new = match &declaration {
            Declaration::Queue { name, .. } => self.queue(name).is_err(),
            Declaration::Exchange(exchange) => !self.has_exchange(&exchange.name),
            Declaration::Binding(_) => true,
        };
        self.run(declaration.verb()?).await?;
        Ok(is_new)
    }

    /// Whether there is an exchange of this name.
    pub(crate) fn has_exchange(&self, name: &str) -> bool {
        self.broker.table().exchange(self.vhost, name.as_bytes()).is_some()
    }

    /// Deletes an exchange; with `if_unused`, only if nothing is bound to it.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn delete_exchange(&self, name: &str, if_unused: bool) -> Result<(), OperationError> {
        if !self.has_exchange(name) {
            return Err(OperationError::Missing("exchange", name.to_owned()));
        }
        self.run(Verb::DeleteExchange { exchange: Name::from(name), if_unused }).await.map(drop)
    }

    /// Removes a binding.
    ///
    /// # Errors
    /// [`OperationError`].
    pub(crate) async fn remove_binding(&self, binding: &BindingDeclaration) -> Result<(), OperationError> {
        self.run(Verb::Unbind(Box::new(binding.bind()))).await.map(drop)
    }

    /// Removes the binding between two ends that has this properties key.
    ///
    /// # Errors
    /// There is no such binding; or [`OperationError`].
    pub(crate) async fn unbind(&self, ends: Ends, properties_key: &str) -> Result<(), OperationError> {
        let is_meant =
            |binding: &BindingFacts| ends.are_of(binding) && binding.properties_key == properties_key;
        let found = bindings_where(&self.broker, self.vhost, is_meant).await;
        let missing = || OperationError::Missing("binding", properties_key.to_owned());
        let BindingFacts { routing_key, arguments, .. } = found.into_iter().next().ok_or_else(missing)?;
        self.remove_binding(&BindingDeclaration { ends, routing_key, arguments }).await
    }
}
