//! `/api/exchanges` and `/api/bindings`: the routing table.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::route::Exchange;
use serde_json::{Value, json};

use crate::operations::routing::{BindingFacts, BindingKey, ExchangeFacts, binding_keys};
use crate::requests::administered::Administered;
use crate::requests::answer::{json_with, not_found};
use crate::requests::list::{ListQuery, list};

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// Lists the exchanges of one vhost, or of all vhosts that the user may see.
pub(super) async fn exchanges(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    vhost: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Response {
    let vhost = vhost.as_ref().map(|Path(name)| name.as_str());
    match broker.listed(&identity, vhost) {
        Some(vhosts) => answer_list(broker, &vhosts, &pairs).await,
        None => not_found(),
    }
}

async fn answer_list(broker: Arc<Administered>, vhosts: &[VhostId], pairs: &[(String, String)]) -> Response {
    let table = broker.shared.table.load_full();
    let mut keys: Vec<(VhostId, Name)> = Vec::new();
    for vhost in vhosts {
        keys.extend(table.exchanges(*vhost).map(|exchange| (*vhost, exchange.name().clone())));
    }
    keys.sort_unstable();
    let name_of = |(_, name): &(VhostId, Name)| Some(name.to_string());
    let show = move |(vhost, name): &(VhostId, Name)| {
        table.exchange(*vhost, name.as_bytes()).map(|exchange| exchange_row(&broker, *vhost, exchange))
    };
    list(ListQuery::read(pairs), keys, name_of, show).await
}

/// One exchange.
pub(super) async fn exchange(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    // In paths, RabbitMQ calls the default exchange `amq.default`.
    let name = if name == "amq.default" { "" } else { &name };
    let table = broker.shared.table.load();
    match table.exchange(vhost, name.as_bytes()) {
        Some(exchange) => json_with(StatusCode::OK, &exchange_row(&broker, vhost, exchange)),
        None => not_found(),
    }
}

/// Lists the bindings of one vhost, or of all vhosts that the user may see, including the default exchange's bindings.
pub(super) async fn bindings(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    vhost: Option<Path<String>>,
    Query(pairs): Pairs,
) -> Response {
    let vhost = vhost.as_ref().map(|Path(name)| name.as_str());
    match broker.listed(&identity, vhost) {
        Some(vhosts) => answer_bindings(broker, &vhosts, &pairs).await,
        None => not_found(),
    }
}

async fn answer_bindings(
    broker: Arc<Administered>,
    vhosts: &[VhostId],
    pairs: &[(String, String)],
) -> Response {
    let keys = binding_keys(&broker, vhosts).await;
    let row = move |key: &BindingKey| BindingFacts::of(&broker, key).as_ref().map(binding_row);
    list(ListQuery::read(pairs), keys, |key| Some(key.source.to_string()), row).await
}

/// The exchanges of a vhost.
pub(super) fn exchange_rows(broker: &Administered, vhost: VhostId) -> Vec<Value> {
    let table = broker.shared.table.load_full();
    table.exchanges(vhost).map(|exchange| exchange_row(broker, vhost, exchange)).collect()
}

fn exchange_row(broker: &Administered, vhost: VhostId, exchange: &Exchange) -> Value {
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
