//! `/api/queues`: lists, shows, deletes and purges queues.

use axum::extract::{Path, Query};
use axum::response::Response;
use imori_core::activity::QueueActivity;
use imori_core::broker::DeleteOptions;
use imori_core::id::QueueId;
use imori_core::name::Name;
use serde_json::{Map, Value, json};

use crate::objects::operation_error::OperationError;
use crate::operations::in_effect::{policy_fields, sources};
use crate::operations::queues::{QueueFacts, arguments, queue_ids};
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::list::{Columns, ListQuery, list};
use crate::requests::operator::Operator;

type Pairs = Query<Vec<(String, String)>>;

/// Lists the queues of one vhost, or of all vhosts that the user may see.
pub(super) async fn queues(operator: Operator, Query(pairs): Pairs) -> Result<Response, OperationError> {
    let (vhosts, state) = (operator.vhost_ids()?, operator.state);
    let name_of = |(name, _): &(Name, QueueId)| Some(name.to_string());
    state.metrics.refresh_rates();
    let keys = queue_ids(&state.broker, &vhosts);
    Ok(list(ListQuery::read(&pairs), keys, name_of, move |(_, id)| queue_row(&state, *id)).await)
}

/// One queue.
pub(super) async fn queue(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Result<Answer, OperationError> {
    let columns = pairs.iter().find(|(name, _)| name == "columns").map(|(_, columns)| columns.as_str());
    let id = operator.in_vhost()?.queue(&name)?;
    operator.state.metrics.refresh_rates();
    let mut row = queue_row(&operator.state, id).ok_or(OperationError::Missing("queue", name))?;
    if let Some(facts) = QueueFacts::of(operator.broker(), id) {
        let settings = sources(&facts.settings, &facts.matched).into_iter();
        row["in_effect"] =
            settings.map(|of| json!({"key": of.key, "value": of.value, "source": of.source})).collect();
    }
    Ok(Answer::of(Columns::read(columns.unwrap_or_default()).of(row)))
}

/// Deletes a queue; with `if-unused=true` only if it has no consumer, with `if-empty=true` only if it is empty.
pub(super) async fn delete_queue(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Result<Answer, OperationError> {
    let is_set = |name: &str| pairs.iter().any(|(known, value)| known == name && value == "true");
    let options = DeleteOptions { if_unused: is_set("if-unused"), if_empty: is_set("if-empty") };
    operator.in_vhost()?.delete_queue(&name, options).await?;
    Ok(Answer::done())
}

/// Drops the ready messages of a queue.
pub(super) async fn purge_queue(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    operator.in_vhost()?.purge_queue(&name).await?;
    Ok(Answer::done())
}

/// A queue as RabbitMQ shows it.
pub(super) fn queue_row(state: &AdminState, id: QueueId) -> Option<Value> {
    let facts = QueueFacts::of(&state.broker, id)?;
    let arguments = arguments(&facts.settings);
    let QueueFacts { settings, ready, unsettled, delayed, consumers, activity, .. } = &facts;
    let mut row = json!({
        "name": facts.name.to_string(),
        "vhost": facts.vhost,
        "node": state.node,
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
        "message_stats": message_stats(state, id, activity),
    });
    for (name, value) in policy_fields(&state.broker, &facts.vhost, &facts.matched) {
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
fn message_stats(state: &AdminState, id: QueueId, activity: &QueueActivity) -> Value {
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
        let rate = state.metrics.rates.of(id, count);
        stats.insert(name.to_owned(), json!(count(activity)));
        stats.insert(format!("{name}_details"), json!({"rate": rate}));
    }
    Value::Object(stats)
}
