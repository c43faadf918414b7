//! `/api/policies` and `/api/operator-policies`: settings of queues and exchanges by their names.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::access::{PolicyKind, PolicyRow, SetPolicy};
use crate::requests::administered::Administered;
use crate::requests::answer::{access_refused, created, done, json_with, not_found, not_permitted};
use crate::requests::body::Body;
use crate::requests::policies::change_policies;

type Broker = State<Arc<Administered>>;

/// All policies of a kind, or those of a vhost, by rising priority.
pub(super) async fn policies(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    vhost: Option<Path<String>>,
) -> Response {
    let objects = broker.shared.access.objects();
    let vhosts: Vec<String> = match vhost {
        Some(Path(name)) if broker.vhost(&identity, &name).is_some() => vec![name],
        Some(_) => return not_found(),
        None => broker.vhosts(&identity).iter().map(|(name, _)| name.to_string()).collect(),
    };
    let mut rows = Vec::new();
    for vhost in &vhosts {
        let of_kind = objects.policies_of_kind(kind, vhost);
        rows.extend(of_kind.map(|(name, policy)| (policy.row.priority, row(vhost, name, policy))));
    }
    rows.sort_by_key(|(priority, _)| *priority);
    let rows: Value = rows.into_iter().map(|(_, row)| row).collect();
    json_with(StatusCode::OK, &rows)
}

/// One policy.
pub(super) async fn policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let found = broker.vhost(&identity, &vhost);
    match found.and_then(|_| broker.shared.access.policy((kind, &vhost, &name))) {
        Some(policy) => json_with(StatusCode::OK, &row(&vhost, &name, &policy)),
        None => not_found(),
    }
}

/// A policy as RabbitMQ shows it.
pub(super) fn row(vhost: &str, name: &str, SetPolicy { row, .. }: &SetPolicy) -> Value {
    json!({
        "vhost": vhost,
        "name": name,
        "pattern": row.pattern,
        "apply-to": row.apply_to,
        "definition": row.definition,
        "priority": row.priority,
    })
}

/// Sets a policy, which acts before this answers. Keys that mean nothing here are named in the answer.
pub(super) async fn put_policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Body(fields): Body,
) -> Response {
    let Some(id) = broker.vhost(&identity, &vhost) else { return not_found() };
    if !may_set(kind, &identity, id) {
        return not_permitted();
    }
    let row = match PolicyRow::read(&fields) {
        Ok(row) => row,
        Err(error) => return access_refused(&error),
    };
    let without_effect: Vec<String> = row.without_effect().into_iter().map(str::to_owned).collect();
    let shown = (vhost.clone(), name.clone());
    let (pattern, definition) = (row.pattern.clone(), json!(row.definition).to_string());
    let put = change_policies(&broker, vec![vhost.clone()], move |draft| {
        draft.put_policy((kind, &vhost, &name), row)
    });
    let is_new = match put.await {
        Ok(is_new) => is_new,
        Err(refusal) => return refusal,
    };
    let (vhost, name) = (shown.0.escape_debug(), shown.1.escape_debug());
    let (kind, pattern) = (kind.word(), pattern.escape_debug());
    info!(kind, %name, %vhost, %pattern, definition, by = %identity.user, "a policy is set");
    if without_effect.is_empty() {
        return if is_new { created() } else { done() };
    }
    warn!(kind, %name, %vhost, keys = without_effect.join(","), "keys of a policy have no effect here");
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    json_with(status, &json!({"without_effect": without_effect}))
}

/// Takes a policy away; the one that matches next acts before this answers.
pub(super) async fn delete_policy(
    kind: PolicyKind,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let Some(id) = broker.vhost(&identity, &vhost) else { return not_found() };
    if !may_set(kind, &identity, id) {
        return not_permitted();
    }
    let shown = (vhost.clone(), name.clone());
    let deleted =
        change_policies(&broker, vec![vhost.clone()], move |draft| draft.delete_policy(kind, &vhost, &name));
    match deleted.await {
        Ok(()) => {
            let (vhost, name) = (shown.0.escape_debug(), shown.1.escape_debug());
            info!(kind = kind.word(), %name, %vhost, by = %identity.user, "a policy is deleted");
            done()
        }
        Err(refusal) => refusal,
    }
}

/// Policies are set by policymakers of the vhost, operator policies by administrators alone.
fn may_set(kind: PolicyKind, identity: &Identity, vhost: VhostId) -> bool {
    let (action, object) = match kind {
        PolicyKind::Policy => (Action::SetPolicy, Object::Vhost),
        PolicyKind::Operator => (Action::Administer, Object::Broker),
    };
    authorize(identity, action, vhost, object).is_ok()
}
