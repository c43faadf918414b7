//! `/v1/policies`: settings for queues and exchanges whose names match a pattern.

use axum::http::StatusCode;
use imori_server::access::{PolicyKind, PolicyRow, SetPolicy};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::objects::operation_error::OperationError;
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// The kind of a policy: managed in the vhost, or set by the operators of the broker.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Policy,
    OperatorPolicy,
}

impl Kind {
    fn of(self) -> PolicyKind {
        match self {
            Kind::Policy => PolicyKind::Policy,
            Kind::OperatorPolicy => PolicyKind::Operator,
        }
    }
}

/// A policy.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Policy {
    vhost: String,
    kind: Kind,
    name: String,
    /// A regular expression that matches names of queues or exchanges.
    pattern: String,
    /// `queues`, `classic_queues`, `quorum_queues`, `streams`, `exchanges` or `all`.
    apply_to: String,
    /// Among the matching policies of a kind, the one with the highest priority is in effect.
    priority: i64,
    /// Settings under RabbitMQ's names.
    definition: Map<String, Value>,
}

impl Policy {
    fn of(vhost: &str, kind: Kind, name: &str, SetPolicy { row, .. }: &SetPolicy) -> Policy {
        Policy {
            vhost: vhost.to_owned(),
            kind,
            name: name.to_owned(),
            pattern: row.pattern.clone(),
            apply_to: row.apply_to.clone(),
            priority: row.priority,
            definition: row.definition.clone(),
        }
    }
}

/// Lists the policies of a vhost, by kind and name.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/policies/{vhost}", tag = "policies",
    params(("vhost" = String, Path), PageQuery),
    responses((status = 200, body = Page<Policy>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Policy>> {
    let vhost = operator.in_vhost()?.name;
    let objects = operator.broker().access().objects();
    let of_kind = |kind: Kind| {
        let policies = objects.policies_of_kind(kind.of(), &vhost);
        policies.map(|(name, set)| Policy::of(&vhost, kind, name, set)).collect::<Vec<_>>()
    };
    let rows = [of_kind(Kind::Policy), of_kind(Kind::OperatorPolicy)].concat();
    page(query, rows, |row| Some(row.name.clone()), |row| Some(row.clone())).await
}

/// One policy.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/policies/{vhost}/{kind}/{name}", tag = "policies",
    params(("vhost" = String, Path), ("kind" = Kind, Path), ("name" = String, Path)),
    responses((status = 200, body = Policy)),
))]
pub(super) async fn show(
    operator: Operator,
    Names((_vhost, kind, name)): Names<(String, Kind, String)>,
) -> Answered<Policy> {
    let vhost = operator.in_vhost()?.name;
    let found = operator.broker().access().policy((kind.of(), &vhost, &name));
    let found = found.ok_or_else(|| OperationError::Missing(kind.of().word(), name.clone()))?;
    Ok(Answer::of(Policy::of(&vhost, kind, &name, &found)))
}

/// A policy to set.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewPolicy {
    /// A regular expression that matches names of queues or exchanges.
    pattern: String,
    /// The kind of objects that the pattern applies to; `all` if absent.
    #[serde(default)]
    apply_to: Option<String>,
    /// Priority; 0 if absent.
    #[serde(default)]
    priority: Option<i64>,
    /// Settings under RabbitMQ's names.
    definition: Map<String, Value>,
}

/// The result of setting a policy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct PolicyIsSet {
    /// Keys of the definition that have no effect in this broker.
    without_effect: Vec<String>,
}

/// Sets a policy, which is in effect on existing queues and exchanges before this answers.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/policies/{vhost}/{kind}/{name}", tag = "policies",
    params(("vhost" = String, Path), ("kind" = Kind, Path), ("name" = String, Path)),
    request_body = NewPolicy,
    responses((status = 200, body = PolicyIsSet), (status = 201, body = PolicyIsSet)),
))]
pub(super) async fn put(
    operator: Operator,
    Names((_vhost, kind, name)): Names<(String, Kind, String)>,
    Input(NewPolicy { pattern, apply_to, priority, definition }): Input<NewPolicy>,
) -> Answered<PolicyIsSet> {
    let apply_to = apply_to.unwrap_or_else(|| String::from("all"));
    let row = PolicyRow { pattern, apply_to, priority: priority.unwrap_or_default(), definition };
    let without_effect = row.without_effect().into_iter().map(String::from).collect();
    let operator = operator.in_vhost()?;
    let is_new = operator.put_policy(kind.of(), name, row).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Answer::of(PolicyIsSet { without_effect }).with_status(status))
}

/// Deletes a policy; the next matching policy is in effect before this answers.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/policies/{vhost}/{kind}/{name}", tag = "policies",
    params(("vhost" = String, Path), ("kind" = Kind, Path), ("name" = String, Path)),
    responses((status = 204, description = "it is deleted")),
))]
pub(super) async fn delete(
    operator: Operator,
    Names((_vhost, kind, name)): Names<(String, Kind, String)>,
) -> Result<Answer, Problem> {
    operator.in_vhost()?.delete_policy(kind.of(), name).await?;
    Ok(Answer::done())
}
