//! `/v1/queues`: lists, shows, declares, deletes and purges queues.

use imori_core::activity::QueueActivity;
use imori_core::broker::DeleteOptions;
use imori_core::id::QueueId;
use imori_core::name::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::milliseconds::millis;
use crate::objects::declaration::Declaration;
use crate::objects::operation_error::OperationError;
use crate::operations::in_effect::{InEffect, sources};
use crate::operations::queues::{QueueFacts, arguments, queue_ids};
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// A queue as it is now.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Queue {
    name: String,
    vhost: String,
    /// The queue survives a restart of the broker.
    durable: bool,
    /// The queue is deleted with its last consumer.
    auto_delete: bool,
    /// The connection that the queue is exclusive to.
    owner: Option<String>,
    /// The arguments to declare the queue again with.
    arguments: Map<String, Value>,
    /// Number of ready messages.
    ready: usize,
    /// Body bytes of ready messages, as far as known after a restart.
    ready_bytes: u64,
    /// Number of unsettled deliveries.
    unsettled: usize,
    /// Number of delayed messages that are not due yet.
    delayed: usize,
    consumers: usize,
    /// Milliseconds for which the next message has waited; null without one, in a stream, and where it is on disk.
    oldest_ms: Option<u64>,
    /// Publishers wait, because the queue grows faster than it is written to disk.
    publishers_wait: bool,
    /// The policy in effect.
    policy: Option<String>,
    /// The operator policy in effect.
    operator_policy: Option<String>,
    /// Effective values of the settings that policies can change; only in the answer for a single queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_effect: Option<Vec<Setting>>,
    rates: Rates,
}

/// A setting in effect.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Setting {
    /// The setting's name in policies.
    key: &'static str,
    /// A number, a string, or null if nothing is set.
    value: Value,
    /// The source of the value: `default`, `argument`, `policy NAME` or `operator policy NAME`.
    source: String,
}

/// Counts since the queue was declared or the broker started, with their rates.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Rates {
    published: Rate,
    delivered: Rate,
    acknowledged: Rate,
    redelivered: Rate,
}

/// A count, and its growth per second.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct Rate {
    total: u64,
    per_second: f64,
}

impl Queue {
    fn of(state: &AdminState, id: QueueId) -> Option<Queue> {
        QueueFacts::of(&state.broker, id).map(|facts| Queue::with(state, id, facts))
    }

    fn with(state: &AdminState, id: QueueId, facts: QueueFacts) -> Queue {
        let rate = |count: fn(&QueueActivity) -> u64| Rate {
            total: count(&facts.activity),
            per_second: state.metrics.rates.of(id, count),
        };
        Queue {
            name: facts.name.to_string(),
            arguments: arguments(&facts.settings),
            durable: facts.settings.is_durable,
            auto_delete: facts.settings.is_auto_delete,
            ready: facts.ready,
            ready_bytes: facts.ready_bytes,
            unsettled: facts.unsettled,
            delayed: facts.delayed,
            consumers: facts.consumers,
            oldest_ms: facts.waits_since.map(|since| millis(state.broker.now().since(since))),
            publishers_wait: facts.is_throttling,
            policy: facts.matched.policy.as_ref().map(|policy| policy.name.to_string()),
            operator_policy: facts.matched.operator.as_ref().map(|policy| policy.name.to_string()),
            in_effect: None,
            rates: Rates {
                published: rate(|of| of.published),
                delivered: rate(QueueActivity::deliveries),
                acknowledged: rate(|of| of.accepted),
                redelivered: rate(|of| of.redelivered),
            },
            owner: facts.owner,
            vhost: facts.vhost,
        }
    }

    /// A queue including its settings in effect.
    fn whole(state: &AdminState, id: QueueId) -> Option<Queue> {
        let facts = QueueFacts::of(&state.broker, id)?;
        let shown = |InEffect { key, value, source }: InEffect| Setting { key, value, source };
        let in_effect = sources(&facts.settings, &facts.matched).into_iter().map(shown).collect();
        Some(Queue { in_effect: Some(in_effect), ..Queue::with(state, id, facts) })
    }
}

/// Lists the queues of all vhosts that you may see.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/queues", tag = "queues",
    params(PageQuery),
    responses((status = 200, body = Page<Queue>)),
))]
pub(super) async fn list_all(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Queue>> {
    let vhosts = operator.vhost_ids()?;
    answer_page(&operator.state, query, queue_ids(operator.broker(), &vhosts)).await
}

/// Lists the queues of a vhost.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/queues/{vhost}", tag = "queues",
    params(("vhost" = String, Path), PageQuery),
    responses((status = 200, body = Page<Queue>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Queue>> {
    let vhosts = operator.vhost_ids()?;
    answer_page(&operator.state, query, queue_ids(operator.broker(), &vhosts)).await
}

async fn answer_page(
    state: &AdminState,
    query: PageQuery,
    keys: Vec<(Name, QueueId)>,
) -> Answered<Page<Queue>> {
    state.metrics.refresh_rates();
    page(query, keys, |(name, _)| Some(name.to_string()), |(_, id)| Queue::of(state, *id)).await
}

/// One queue.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/queues/{vhost}/{name}", tag = "queues",
    params(("vhost" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = Queue)),
))]
pub(super) async fn show(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
) -> Answered<Queue> {
    let id = operator.in_vhost()?.queue(&name)?;
    operator.state.metrics.refresh_rates();
    let found = Queue::whole(&operator.state, id);
    Ok(Answer::of(found.ok_or(OperationError::Missing("queue", name))?))
}

/// The properties of a queue to declare.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewQueue {
    /// The queue survives a restart of the broker.
    #[serde(default = "yes")]
    #[cfg_attr(feature = "openapi", schema(default = true))]
    durable: bool,
    /// The queue is deleted with its last consumer.
    #[serde(default)]
    auto_delete: bool,
    /// Arguments, such as `x-message-ttl`.
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn yes() -> bool {
    true
}

/// Declares a queue. An existing queue must have the same properties.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/queues/{vhost}/{name}", tag = "queues",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = NewQueue,
    responses((status = 201, description = "it is made"), (status = 204, description = "it was there")),
))]
pub(super) async fn put(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(new): Input<NewQueue>,
) -> Result<Answer, Problem> {
    let NewQueue { durable: is_durable, auto_delete: is_auto_delete, arguments } = new;
    let declaration = Declaration::Queue { name, is_durable, is_auto_delete, arguments };
    let operator = operator.in_vhost()?;
    Ok(Answer::put(operator.declare(declaration).await?))
}

/// Conditions of a deletion.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteQuery {
    /// Delete the queue only if it has no consumer.
    #[serde(default)]
    if_unused: bool,
    /// Delete the queue only if it has no ready messages.
    #[serde(default)]
    if_empty: bool,
    /// Only report how many messages would be dropped.
    #[serde(default)]
    dry_run: bool,
}

/// The messages that were dropped, or would be.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Dropped {
    /// This was a dry run: nothing changed.
    pub(super) dry_run: bool,
    /// Number of ready messages dropped, or that would be dropped.
    pub(super) messages: usize,
}

/// Deletes a queue with its messages; with `dry_run` only reports how many ready messages would be dropped.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/queues/{vhost}/{name}", tag = "queues",
    params(("vhost" = String, Path), ("name" = String, Path), DeleteQuery),
    responses((status = 200, body = Dropped)),
))]
pub(super) async fn delete(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(query): Params<DeleteQuery>,
) -> Answered<Dropped> {
    let operator = operator.in_vhost()?;
    let messages = operator.would_drop(&name)?;
    if !query.dry_run {
        let options = DeleteOptions { if_unused: query.if_unused, if_empty: query.if_empty };
        operator.delete_queue(&name, options).await?;
    }
    Ok(Answer::of(Dropped { dry_run: query.dry_run, messages }))
}

/// Options of a purge.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct DryRunQuery {
    /// Only report what would happen.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// Drops the ready messages of a queue; with `dry_run` only reports how many there are.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/queues/{vhost}/{name}/purge", tag = "queues",
    params(("vhost" = String, Path), ("name" = String, Path), DryRunQuery),
    responses((status = 200, body = Dropped)),
))]
pub(super) async fn purge(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(DryRunQuery { dry_run }): Params<DryRunQuery>,
) -> Answered<Dropped> {
    let operator = operator.in_vhost()?;
    let messages = if dry_run { operator.would_drop(&name)? } else { operator.purge_queue(&name).await? };
    Ok(Answer::of(Dropped { dry_run, messages }))
}
