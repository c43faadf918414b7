//! `/api/exchanges` and `/api/bindings`: the routing table.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::route::{Arguments, Exchange, Table, Target};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::queues::queue_ids;
use crate::http::rest_at;
use crate::requests::administered::Administered;
use crate::requests::answer::{json_with, not_found, shown};
use crate::requests::list::{ListQuery, list};
use crate::shared::queue_key;

/// The kind of an exchange that delays messages, as RabbitMQ's plugin names it.
pub(super) const DELAYED: &str = "x-delayed-message";

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// The list of all exchanges, or of those of a vhost.
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
    // RabbitMQ's name for the default exchange in paths.
    let name = if name == "amq.default" { "" } else { &name };
    let table = broker.shared.table.load();
    match table.exchange(vhost, name.as_bytes()) {
        Some(exchange) => json_with(StatusCode::OK, &exchange_row(&broker, vhost, exchange)),
        None => not_found(),
    }
}

/// The list of all bindings of queues and exchanges, or of those of a vhost; those of the default exchange are among
/// them.
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

/// A binding as it was when its list was made.
struct BindingKey {
    vhost: VhostId,
    source: Name,
    key: Name,
    arguments: Arguments,
    target: Target,
}

async fn answer_bindings(
    broker: Arc<Administered>,
    vhosts: &[VhostId],
    pairs: &[(String, String)],
) -> Response {
    let keys = binding_keys(&broker, vhosts).await;
    list(
        ListQuery::read(pairs),
        keys,
        |key| Some(key.source.to_string()),
        move |key| binding_row(&broker, key),
    )
    .await
}

/// The bindings of these vhosts, those of the default exchange among them.
async fn binding_keys(broker: &Administered, vhosts: &[VhostId]) -> Vec<BindingKey> {
    let table = broker.shared.table.load_full();
    let mut keys = Vec::new();
    for vhost in vhosts {
        let implied = queue_ids(broker, &[*vhost]).into_iter();
        keys.extend(implied.map(|(name, id)| BindingKey {
            vhost: *vhost,
            source: Name::from(""),
            key: name,
            arguments: Arguments::NONE,
            target: Target::Queue(id),
        }));
        push_bindings(&table, *vhost, &mut keys).await;
    }
    keys
}

/// The bindings of a vhost that a test of their rows picks.
pub(super) async fn bindings_where(
    broker: &Administered,
    vhost: VhostId,
    is_meant: impl Fn(&Value) -> bool,
) -> Vec<Value> {
    let keys = binding_keys(broker, &[vhost]).await;
    keys.iter().filter_map(|key| binding_row(broker, key)).filter(is_meant).collect()
}

/// Live subscriptions are no bindings to RabbitMQ's readers, so that they are left out.
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

/// The exchanges of a vhost.
pub(super) fn exchange_rows(broker: &Administered, vhost: VhostId) -> Vec<Value> {
    let table = broker.shared.table.load_full();
    table.exchanges(vhost).map(|exchange| exchange_row(broker, vhost, exchange)).collect()
}

fn exchange_row(broker: &Administered, vhost: VhostId, exchange: &Exchange) -> Value {
    let settings = exchange.settings();
    let kind = exchange.kind().name();
    let alternate = settings.alternate.as_ref().map(|name| ("alternate-exchange", json!(name.to_string())));
    let delayed = settings.is_delayed.then(|| ("x-delayed-type", json!(kind)));
    let arguments = alternate.into_iter().chain(delayed).map(|(name, value)| (name.to_owned(), value));
    let mut row = json!({
        "name": exchange.name().to_string(),
        "vhost": broker.vhost_name(vhost),
        "type": if settings.is_delayed { DELAYED } else { kind },
        "durable": settings.is_durable,
        "auto_delete": settings.is_auto_delete,
        "internal": settings.is_internal,
        "arguments": arguments.collect::<Map<String, Value>>(),
    });
    if let Some(policy) = &exchange.matched().policy {
        row["policy"] = json!(policy.name.to_string());
    }
    row
}

fn binding_row(broker: &Administered, binding: &BindingKey) -> Option<Value> {
    let (destination, kind) = match &binding.target {
        Target::Queue(id) => {
            (broker.shared.queues.with(queue_key(*id), |queue| queue.name().to_string())?, "queue")
        }
        Target::Exchange(name) => (name.to_string(), "exchange"),
        Target::Subscription(_) | Target::Member { .. } => return None,
    };
    let key = binding.key.to_string();
    let arguments: Map<String, Value> =
        binding.arguments.entries().iter().map(|(name, value)| (name.to_string(), shown(value))).collect();
    Some(json!({
        "source": binding.source.to_string(),
        "vhost": broker.vhost_name(binding.vhost),
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": arguments,
        "properties_key": properties_key(&key, &arguments),
    }))
}

/// A name for a binding among those between the same ends: its key with `%` for what is no letter or digit, and behind a
/// tilde a digest of its arguments.
fn properties_key(key: &str, arguments: &Map<String, Value>) -> String {
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
