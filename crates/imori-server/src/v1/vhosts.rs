//! `/v1/vhosts`: namespaces with their own exchanges, queues and rights, and their limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::name::Name;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::problem::Problem;
use super::request::{Answer, Input, Json, Names, Page, PageQuery, Params, made, page};
use crate::operations::limits::{LimitState, Limited, Limits, set_limits};
use crate::operations::vhosts::{self, Totals};
use crate::requests::administered::Administered;
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;
type User = Extension<Identity>;

/// A vhost.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    async fn of(broker: &Administered, name: &str, id: VhostId) -> Vhost {
        let Totals { ready, unsettled } = Totals::of(broker, &[id]).await;
        let facts = broker.shared.access.objects().vhosts.get(name).cloned().unwrap_or_default();
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
#[utoipa::path(
    get, path = "/v1/vhosts", tag = "vhosts",
    params(PageQuery),
    responses((status = 200, body = Page<Vhost>)),
)]
pub(super) async fn list(
    State(broker): Broker,
    Extension(identity): User,
    Params(query): Params<PageQuery>,
) -> Answer<Page<Vhost>> {
    let mut rows = Vec::new();
    for (name, id) in broker.vhosts(&identity) {
        let name: Name = name;
        rows.push(Vhost::of(&broker, &name.to_string(), id).await);
    }
    page(query, rows, |row| Some(row.name.clone()), |row| Some(row.clone())).await
}

/// One vhost.
#[utoipa::path(
    get, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 200, body = Vhost)),
)]
pub(super) async fn show(
    State(broker): Broker,
    Extension(identity): User,
    Names(vhost): Names<String>,
) -> Answer<Vhost> {
    let id = broker.vhost(&identity, &vhost).ok_or_else(|| OperationError::no_vhost(&vhost))?;
    Ok(Json(Vhost::of(&broker, &vhost, id).await))
}

/// The properties of a vhost. An absent property stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewVhost {
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Creates a vhost, or changes its description and tags.
#[utoipa::path(
    put, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    request_body = NewVhost,
    responses((status = 201, description = "it is made"), (status = 204, description = "it is changed")),
)]
pub(super) async fn put(
    State(broker): Broker,
    Names(vhost): Names<String>,
    Input(NewVhost { description, tags }): Input<NewVhost>,
) -> Result<Response, Problem> {
    Ok(made(vhosts::put_vhost(&broker, vhost, description, tags).await?))
}

/// Deletes a vhost with its connections, queues, exchanges and permissions.
#[utoipa::path(
    delete, path = "/v1/vhosts/{vhost}", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 204, description = "it is deleted")),
)]
pub(super) async fn delete(
    State(broker): Broker,
    Names(vhost): Names<String>,
) -> Result<StatusCode, Problem> {
    vhosts::delete_vhost(&broker, vhost).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows the limits of a vhost and their current use. An unlimited rate is not counted.
#[utoipa::path(
    get, path = "/v1/vhosts/{vhost}/limits", tag = "vhosts",
    params(("vhost" = String, Path)),
    responses((status = 200, body = BTreeMap<String, LimitState>)),
)]
pub(super) async fn show_limits(
    State(broker): Broker,
    Extension(identity): User,
    Names(vhost): Names<String>,
) -> Answer<BTreeMap<String, LimitState>> {
    let missing = || OperationError::no_vhost(&vhost);
    broker.vhost(&identity, &vhost).ok_or_else(missing)?;
    Ok(Json(Limited::Vhost.states(&broker.shared, &vhost).ok_or_else(missing)?))
}

/// Replaces the limits of a vhost: `max-connections`, `max-queues`, `max-bytes`, `max-publish-rate` and
/// `max-publish-byte-rate`. They apply from now on, on live connections too.
#[utoipa::path(
    put, path = "/v1/vhosts/{vhost}/limits", tag = "vhosts",
    params(("vhost" = String, Path)),
    request_body = BTreeMap<String, i64>,
    responses((status = 204, description = "they are set")),
)]
pub(super) async fn put_limits(
    State(broker): Broker,
    Extension(identity): User,
    Names(vhost): Names<String>,
    Input(limits): Input<Limits>,
) -> Result<StatusCode, Problem> {
    set_limits(&broker, &identity, Limited::Vhost, vhost, limits).await?;
    Ok(StatusCode::NO_CONTENT)
}
