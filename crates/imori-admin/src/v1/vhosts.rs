//! `/v1/vhosts`: namespaces with their own exchanges, queues and rights, and their limits.

use std::collections::BTreeMap;

use imori_core::id::VhostId;
use imori_server::broker::Broker;
use serde::{Deserialize, Serialize};

use crate::objects::operation_error::OperationError;
use crate::operations::limits::{LimitState, Limited, Limits, set_limits};
use crate::operations::vhost_operator::VhostOperator;
use crate::operations::vhosts;
use crate::operations::vhosts::Totals;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// A vhost.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Vhost {
    name: String,
    description: String,
    tags: Vec<String>,
    /// Limits by name, such as `max-connections` and `max-bytes`.
    limits: BTreeMap<String, i64>,
    /// Number of ready messages in the vhost's queues.
    ready: usize,
    /// Number of unsettled deliveries of the vhost's queues.
    unsettled: usize,
}

impl Vhost {
    async fn of(broker: &Broker, name: &str, id: VhostId) -> Vhost {
        let Totals { ready, unsettled } = Totals::of(broker, &[id]).await;
        let facts = broker.access().objects().vhosts.get(name).cloned().unwrap_or_default();
        Vhost {
            name: name.to_owned(),
            description: facts.description.clone(),
            tags: facts.tags.clone(),
            limits: facts.limits.clone(),
            ready,
            unsettled,
        }
    }
}

/// Lists the vhosts that you may see.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/vhosts", tag = "vhosts",
    params(PageQuery),
    responses((status = 200, body = Page<Vhost>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Vhost>> {
    let mut rows = Vec::new();
    for (name, id) in operator.vhosts() {
        rows.push(Vhost::of(operator.broker(), &name.to_string(), id).await);
    }
    page(query, rows, |row| Some(row.name.clone()), |row| Some(row.clone())).await
}

/// One vhost.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 200, body = Vhost)),
))]
pub(super) async fn show(operator: Operator) -> Answered<Vhost> {
    let VhostOperator { vhost, name, .. } = operator.in_vhost()?;
    Ok(Answer::of(Vhost::of(operator.broker(), &name, vhost).await))
}

/// The properties of a vhost. An absent property stays as it is.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewVhost {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Creates a vhost, or changes its description and tags.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    request_body = NewVhost,
    responses((status = 201, description = "it is made"), (status = 204, description = "it is changed")),
))]
pub(super) async fn put(
    operator: Operator,
    Names(vhost): Names<String>,
    Input(NewVhost { description, tags }): Input<NewVhost>,
) -> Result<Answer, Problem> {
    let described = (description, tags);
    Ok(Answer::put(vhosts::put_vhost(operator.broker(), &operator.identity, vhost, described).await?))
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 204, description = "it is deleted")),
))]
pub(super) async fn delete(operator: Operator, Names(vhost): Names<String>) -> Result<Answer, Problem> {
    vhosts::delete_vhost(operator.broker(), vhost).await?;
    Ok(Answer::done())
}

/// Shows the limits of a vhost and their current use. An unlimited rate is not counted.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/vhosts/{vhost}/limits", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 200, body = BTreeMap<String, LimitState>)),
))]
pub(super) async fn show_limits(operator: Operator) -> Answered<BTreeMap<String, LimitState>> {
    let vhost = operator.in_vhost()?.name;
    let states = Limited::Vhost.states(operator.broker(), &vhost);
    Ok(Answer::of(states.ok_or_else(|| OperationError::no_vhost(&vhost))?))
}

/// Replaces the limits of a vhost: `max-connections`, `max-queues`, `max-bytes`, `max-publish-rate` and
/// `max-publish-byte-rate`. They apply from now on, on live connections too.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/vhosts/{vhost}/limits", tag = "vhosts",
    params(("vhost" = String, Path)),
    request_body = BTreeMap<String, i64>,
    responses((status = 204, description = "they are set")),
))]
pub(super) async fn put_limits(
    operator: Operator,
    Names(vhost): Names<String>,
    Input(limits): Input<Limits>,
) -> Result<Answer, Problem> {
    set_limits(operator.broker(), &operator.identity, Limited::Vhost, vhost, limits).await?;
    Ok(Answer::done())
}
