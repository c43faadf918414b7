//! `/api/exchanges` and `/api/bindings`: the routing table.

use axum::extract::{Path, Query};
use axum::response::Response;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::route::Exchange;
use imori_server::broker::Broker;
use serde_json::{Value, json};

use crate::objects::operation_error::OperationError;
use crate::operations::routing::{BindingFacts, BindingKey, ExchangeFacts, binding_keys};
use crate::requests::answer::Answer;
use crate::requests::list::{ListQuery, list};
use crate::requests::operator::Operator;

type Pairs = Query<Vec<(String, String)>>;

/// Lists the exchanges of one vhost, or of all vhosts that the user may see.
pub(super) async fn exchanges(operator: Operator, Query(pairs): Pairs) -> Result<Response, OperationError> {
    let (vhosts, broker) = (operator.vhost_ids()?, operator.broker().clone());
    let table = broker.table();
    let mut keys: Vec<(VhostId, Name)> = Vec::new();
    for vhost in &vhosts {
        keys.extend(table.exchanges(*vhost).map(|exchange| (*vhost, exchange.name().clone())));
    }
    keys.sort_unstable();
    let name_of = |(_, name): &(VhostId, Name)| Some(name.to_string());
    let show = move |(vhost, name): &(VhostId, Name)| {
        table.exchange(*vhost, name.as_bytes()).map(|exchange| exchange_row(&broker, *vhost, exchange))
    };
    Ok(list(ListQuery::read(&pairs), keys, name_of, show).await)
}

/// One exchange.
pub(super) async fn exchange(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    let vhost = operator.in_vhost()?.vhost;
    // In paths, RabbitMQ calls the default exchange `amq.default`.
    let name = if name == "amq.default" { "" } else { &name };
    let table = operator.broker().table();
    let found = table.exchange(vhost, name.as_bytes());
    let exchange = found.ok_or_else(|| OperationError::Missing("exchange", name.to_owned()))?;
    Ok(Answer::of(exchange_row(operator.broker(), vhost, exchange)))
}

/// Lists the bindings of one vhost, or of all vhosts that the user may see, including the default exchange's bindings.
pub(super) async fn bindings(operator: Operator, Query(pairs): Pairs) -> Result<Response, OperationError> {
    let (vhosts, broker) = (operator.vhost_ids()?, operator.broker().clone());
    let keys = binding_keys(&broker, &vhosts).await;
    let row = move |key: &BindingKey| BindingFacts::of(&broker, key).as_ref().map(binding_row);
    Ok(list(ListQuery::read(&pairs), keys, |key| Some(key.source.to_string()), row).await)
}

/// The exchanges of a vhost.
pub(super) fn exchange_rows(broker: &Broker, vhost: VhostId) -> Vec<Value> {
    let table = broker.table();
    table.exchanges(vhost).map(|exchange| exchange_row(broker, vhost, exchange)).collect()
}

fn exchange_row(broker: &Broker, vhost: VhostId, exchange: &Exchange) -> Value {
    let facts = ExchangeFacts::of(broker, vhost, exchange);
    let mut row = json!({
        "name": facts.name,
        "vhost": facts.vhost,
        "type": facts.kind,
        "durable": facts.is_durable,
        "auto_delete": facts.is_auto_delete,
        "internal": facts.is_internal,
        "arguments": facts.arguments,
    });
    if let Some(policy) = facts.policy {
        row["policy"] = json!(policy);
    }
    row
}

/// A binding as RabbitMQ shows it.
pub(super) fn binding_row(binding: &BindingFacts) -> Value {
    json!({
        "source": binding.source,
        "vhost": binding.vhost,
        "destination": binding.destination,
        "destination_type": if binding.is_to_queue { "queue" } else { "exchange" },
        "routing_key": binding.routing_key,
        "arguments": binding.arguments,
        "properties_key": binding.properties_key,
    })
}
