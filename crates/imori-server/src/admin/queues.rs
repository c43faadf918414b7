//! `/api/queues`: what queues hold, and their deletion and purge.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::activity::QueueActivity;
use imori_core::authorize::Identity;
use imori_core::broker::{DeleteOptions, delete_queue_if, purge};
use imori_core::confirm::Level;
use imori_core::id::{QueueId, VhostId};
use imori_core::name::Name;
use imori_core::policy::Matched;
use imori_core::queue::{Overflow, Queue, QueueSettings};
use serde_json::{Map, Value, json};

use super::in_effect::{policy_fields, sources};
use crate::clock::millis;
use crate::requests::administered::Administered;
use crate::requests::answer::{done, ended, json_with, not_found, refused, shown};
use crate::requests::list::{Columns, ListQuery, list};
use crate::requests::on_cell::{is_kept, on_cell, operator};
use crate::shared::queue_key;

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// The list of all queues, or of those of a vhost.
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

/// The queues of these vhosts by name, of one snapshot of the routing table.
pub(super) fn queue_ids(broker: &Administered, vhosts: &[VhostId]) -> Vec<(Name, QueueId)> {
    let table = broker.shared.table.load_full();
    let mut ids = Vec::new();
    for vhost in vhosts {
        let start = ids.len();
        ids.extend(table.queues(*vhost).map(|(name, id)| (name.clone(), id)));
        if let Some(of_vhost) = ids.get_mut(start..) {
            of_vhost.sort_unstable();
        }
    }
    ids
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
            if let Some(in_effect) = found.and_then(|id| in_effect(&broker, id)) {
                row["in_effect"] = in_effect;
            }
            json_with(StatusCode::OK, &Columns::read(columns.unwrap_or_default()).of(row))
        }
        None => not_found(),
    }
}

/// Deletes a queue, with `if-unused=true` and `if-empty=true` only if it is that.
pub(super) async fn delete_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let is_set = |name: &str| pairs.iter().any(|(known, value)| known == name && value == "true");
    let options = DeleteOptions { if_unused: is_set("if-unused"), if_empty: is_set("if-empty") };
    let deleted = on_cell(&broker.shared, 0, move |cell| {
        delete_queue_if(cell, &operator(&identity, vhost), name.as_bytes(), options, |_| ())
    });
    match deleted.await {
        Some(Ok(deleted)) if is_kept(&broker.shared, deleted.confirm).await => done(),
        Some(Ok(_)) => ended(),
        Some(Err(refusal)) => refused(&refusal),
        None => ended(),
    }
}

/// Drops the messages of a queue that wait.
pub(super) async fn purge_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let purged =
        on_cell(&broker.shared, 0, move |cell| purge(cell, &operator(&identity, vhost), name.as_bytes()));
    match purged.await {
        Some(Ok((_, confirm))) if is_kept(&broker.shared, confirm).await => done(),
        Some(Ok(_)) => ended(),
        Some(Err(refusal)) => refused(&refusal),
        None => ended(),
    }
}

/// A queue as it is now. Its lock is held for a copy, and the JSON is made behind it.
pub(super) fn queue_row(broker: &Administered, id: QueueId) -> Option<Value> {
    let seen = broker.shared.queues.with(queue_key(id), |queue| Seen::of(queue))?;
    let Seen { vhost, name, settings, matched, ready, unsettled, delayed, consumers, activity } = seen;
    let (arguments, vhost) = (arguments(&settings), broker.vhost_name(vhost));
    let mut row = json!({
        "name": name.to_string(),
        "vhost": vhost,
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
        // Of the delayed messages, which no consumer gets yet.
        "messages_delayed": delayed,
        "message_stats": message_stats(broker, id, &activity),
    });
    for (name, value) in policy_fields(broker, &vhost, &matched) {
        row[name] = value;
    }
    if let Some(owner) = settings.exclusive_to {
        let owner = broker.shared.with_link(owner, |link| super::connections::name(link));
        row["owner_pid_details"] = json!({"name": owner});
    }
    Some(row)
}

/// The settings of a queue that are in effect, each with its source.
fn in_effect(broker: &Administered, id: QueueId) -> Option<Value> {
    let seen = broker.shared.queues.with(queue_key(id), |queue| (queue.declared().clone(), queue.matched()));
    seen.map(|(declared, matched)| sources(&declared, &matched))
}

/// A count of a queue, with RabbitMQ's name of it.
type Count = (&'static str, fn(&QueueActivity) -> u64);

/// The counts of a queue and how fast each grows, by RabbitMQ's names.
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

/// The parts of a queue that are shown.
struct Seen {
    vhost: VhostId,
    name: Name,
    /// The settings of its declaration.
    settings: QueueSettings,
    matched: Matched,
    ready: usize,
    unsettled: usize,
    delayed: usize,
    consumers: usize,
    activity: QueueActivity,
}

impl Seen {
    fn of(queue: &Queue) -> Seen {
        Seen {
            vhost: queue.vhost(),
            name: queue.name().clone(),
            settings: queue.declared().clone(),
            matched: queue.matched(),
            ready: queue.ready_len(),
            unsettled: queue.unsettled_len(),
            delayed: queue.delayed_len(),
            consumers: queue.consumers_len(),
            activity: *queue.activity(),
        }
    }
}

/// The arguments by which the queue would be declared again.
fn arguments(settings: &QueueSettings) -> Map<String, Value> {
    let milliseconds = |duration: Option<Duration>| duration.map(|duration| json!(millis(duration)));
    let dead_letter = settings.dead_letter.as_ref();
    let overflow = match settings.overflow {
        Overflow::DropHead => None,
        Overflow::RejectPublish => Some("reject-publish"),
        Overflow::RejectPublishDeadLetter => Some("reject-publish-dlx"),
    };
    let level = settings.level.map(|level| match level {
        Level::Memory => "memory",
        Level::Os => "os",
        Level::Disk => "disk",
    });
    [
        ("x-expires", milliseconds(settings.expires)),
        ("x-message-ttl", milliseconds(settings.message_ttl)),
        ("x-max-length", settings.length_max.map(|max| json!(max))),
        ("x-max-length-bytes", settings.length_bytes_max.map(|max| json!(max))),
        ("x-overflow", overflow.map(|overflow| json!(overflow))),
        ("x-dead-letter-exchange", dead_letter.map(|target| json!(target.exchange.to_string()))),
        (
            "x-dead-letter-routing-key",
            dead_letter.and_then(|target| target.routing_key.as_ref()).map(|key| json!(key.to_string())),
        ),
        ("x-max-priority", settings.priority_max.map(|max| json!(max))),
        ("x-delivery-limit", settings.delivery_limit.map(|limit| json!(limit))),
        ("x-dedup-window", milliseconds(settings.dedup_window)),
        ("x-single-active-consumer", settings.is_single_active.then_some(Value::Bool(true))),
        ("x-level", level.map(|level| json!(level))),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .chain(settings.others.entries().iter().map(|(name, value)| (name.to_string(), shown(value))))
    .collect()
}
