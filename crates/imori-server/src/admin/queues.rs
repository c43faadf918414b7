//! `/api/queues`: lists, shows, deletes and purges queues.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::activity::QueueActivity;
use imori_core::authorize::Identity;
use imori_core::broker::DeleteOptions;
use imori_core::id::{QueueId, VhostId};
use imori_core::name::Name;
use serde_json::{Map, Value, json};

use crate::operations::in_effect::{policy_fields, sources};
use crate::operations::queues::{QueueFacts, arguments, queue_ids};
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::administered::Administered;
use crate::requests::answer::{done, json_with, not_found};
use crate::requests::list::{Columns, ListQuery, list};
use crate::requests::operation_error::OperationError;
use crate::shared::queue_key;

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// Lists the queues of one vhost, or of all vhosts that the user may see.
pub(super) async fn queues(
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
    let name_of = |(name, _): &(Name, QueueId)| Some(name.to_string());
    broker.metrics.rates.refresh(&broker.shared);
    let keys = queue_ids(&broker, vhosts);
    list(ListQuery::read(pairs), keys, name_of, move |(_, id)| queue_row(&broker, *id)).await
}

/// One queue.
pub(super) async fn queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Response {
    let columns = pairs.iter().find(|(name, _)| name == "columns").map(|(_, columns)| columns.as_str());
    let found = broker
        .vhost(&identity, &vhost)
        .and_then(|vhost| broker.shared.table.load().queue(vhost, name.as_bytes()));
    broker.metrics.rates.refresh(&broker.shared);
    match found.and_then(|id| queue_row(&broker, id)) {
        Some(mut row) => {
            let facts = found.and_then(|id| QueueFacts::of(&broker, id));
            if let Some(facts) = facts {
                let settings = sources(&facts.settings, &facts.matched).into_iter();
                row["in_effect"] = settings
                    .map(|of| json!({"key": of.key, "value": of.value, "source": of.source}))
                    .collect();
            }
            json_with(StatusCode::OK, &Columns::read(columns.unwrap_or_default()).of(row))
        }
        None => not_found(),
    }
}

/// Deletes a queue; with `if-unused=true` only if it has no consumer, with `if-empty=true` only if it is empty.
pub(super) async fn delete_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Result<Response, OperationError> {
    let is_set = |name: &str| pairs.iter().any(|(known, value)| known == name && value == "true");
    let options = DeleteOptions { if_unused: is_set("if-unused"), if_empty: is_set("if-empty") };
    VhostOperator::of(&broker, identity, &vhost)?.delete_queue(&name, options).await?;
    Ok(done())
}

/// Drops the ready messages of a queue.
pub(super) async fn purge_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Result<Response, OperationError> {
    VhostOperator::of(&broker, identity, &vhost)?.purge_queue(&name).await?;
    Ok(done())
}

/// A queue as RabbitMQ shows it.
pub(super) fn queue_row(broker: &Administered, id: QueueId) -> Option<Value> {
    let facts = QueueFacts::of(broker, id)?;
    let arguments = arguments(&facts.settings);
    let QueueFacts { settings, ready, unsettled, delayed, consumers, activity, .. } = &facts;
    let mut row = json!({
        "name": facts.name.to_string(),
        "vhost": facts.vhost,
        "node": broker.node,
        "type": arguments.get("x-queue-type").cloned().unwrap_or_else(|| json!("classic")),
        "state": "running",
        "durable": settings.is_durable,
        "auto_delete": settings.is_auto_delete,
        "exclusive": settings.exclusive_to.is_some(),
        "arguments": arguments,
        "consumers": consumers,
        "messages": ready + unsettled,
        "messages_ready": ready,
        "messages_unacknowledged": unsettled,
        // No consumer gets these yet.
        "messages_delayed": delayed,
        "message_stats": message_stats(broker, id, activity),
    });
    for (name, value) in policy_fields(broker, &facts.vhost, &facts.matched) {
        row[name] = value;
    }
    if settings.exclusive_to.is_some() {
        row["owner_pid_details"] = json!({"name": facts.owner});
    }
    Some(row)
}

/// RabbitMQ's name of a count, and the function that reads the count.
type Count = (&'static str, fn(&QueueActivity) -> u64);

/// The counts of a queue and their rates per second, under RabbitMQ's names.
fn message_stats(broker: &Administered, id: QueueId, activity: &QueueActivity) -> Value {
    let counts: [Count; 8] = [
        ("publish", |of| of.published),
        ("deliver", |of| of.delivered_unsettled),
        ("deliver_no_ack", |of| of.delivered_settled),
        ("get", |of| of.got_unsettled),
        ("get_no_ack", |of| of.got_settled),
        ("deliver_get", QueueActivity::deliveries),
        ("redeliver", |of| of.redelivered),
        ("ack", |of| of.accepted),
    ];
    let mut stats = Map::new();
    for (name, count) in counts {
        let rate = broker.metrics.rates.of(queue_key(id), count);
        stats.insert(name.to_owned(), json!(count(activity)));
        stats.insert(format!("{name}_details"), json!({"rate": rate}));
    }
    Value::Object(stats)
}
