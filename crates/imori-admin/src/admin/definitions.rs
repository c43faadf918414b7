//! `/api/definitions`: exports all settings and declarations as one document, and imports such a document.

use std::collections::HashSet;

use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use imori_core::id::{QueueId, VhostId};
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::route::pattern::Pattern;
use imori_server::access::{Objects, PolicyKind};
use serde_json::{Map, Value, json};

use super::exchanges::{binding_row, exchange_rows};
use super::queues::queue_row;
use super::users::row as user_row;
use crate::http::rest_at;
use crate::objects::import::{Import, OPERATOR_POLICY_COMPONENT, VHOST_LIMITS_COMPONENT};
use crate::objects::operation_error::OperationError;
use crate::operations::queues::queue_ids;
use crate::operations::routing::{BindingFacts, bindings_where};
use crate::operations::streams::StreamFacts;
use crate::operations::take_over;
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::admin_state::AdminState;
use crate::requests::answer::Answer;
use crate::requests::body::{Body, Upload};
use crate::requests::operator::Operator;

/// Exports users, vhosts, permissions, policies, and the durable declarations of each vhost.
pub(super) async fn export(operator: Operator) -> Answer {
    let broker = operator.broker();
    let objects = broker.access().objects();
    let mut document = head();
    let users = objects.users.iter().map(|(name, user)| user_row(name, user));
    document.insert(String::from("users"), users.collect());
    let vhosts = objects.vhosts.iter().map(|(name, facts)| {
        json!({
            "name": name,
            "description": facts.description,
            "tags": facts.tags,
            "metadata": {"description": facts.description, "tags": facts.tags},
        })
    });
    document.insert(String::from("vhosts"), vhosts.collect());
    let limited = objects.vhosts.iter().filter(|(_, facts)| !facts.limits.is_empty());
    let limits = limited.map(|(name, facts)| {
        json!({
            "component": VHOST_LIMITS_COMPONENT,
            "name": "limits",
            "vhost": name,
            "value": facts.limits,
        })
    });
    let (policies, operators) = policies(&objects, None);
    document.insert(String::from("parameters"), limits.chain(operators).collect());
    document.insert(String::from("policies"), policies.into());
    insert_permissions(&mut document, &objects);
    let vhosts: Vec<VhostId> = operator.vhosts().into_iter().map(|(_, vhost)| vhost).collect();
    insert_declared(&mut document, &operator.state, &vhosts, true).await;
    downloaded(document)
}

/// Exports the policies and the durable declarations of one vhost.
pub(super) async fn export_vhost(operator: Operator) -> Result<Answer, OperationError> {
    let VhostOperator { vhost, name, .. } = operator.in_vhost()?;
    let mut document = head();
    let (policies, operators) = policies(&operator.broker().access().objects(), Some(&name));
    document.insert(String::from("parameters"), operators.into());
    document.insert(String::from("policies"), policies.into());
    insert_declared(&mut document, &operator.state, &[vhost], false).await;
    Ok(downloaded(document))
}

fn head() -> Map<String, Value> {
    let version = env!("CARGO_PKG_VERSION");
    [("product_name", json!("Imori")), ("product_version", json!(version))]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

fn downloaded(document: Map<String, Value>) -> Answer {
    let file = HeaderValue::from_static("attachment; filename=definitions.json");
    Answer::of(Value::Object(document)).with_header(CONTENT_DISPOSITION, file)
}

/// The policies and the operator policies; the latter are parameters in RabbitMQ's documents. With a `vhost`, only its
/// policies, in rows that do not name it.
fn policies(objects: &Objects, vhost: Option<&str>) -> (Vec<Value>, Vec<Value>) {
    let (mut policies, mut operators) = (Vec::new(), Vec::new());
    for ((kind, of, name), policy) in &objects.policies {
        if vhost.is_some_and(|vhost| vhost != of) {
            continue;
        }
        let mut row = match kind {
            PolicyKind::Policy => super::policies::row(of, name, policy),
            PolicyKind::Operator => json!({
                "component": OPERATOR_POLICY_COMPONENT,
                "name": name,
                "vhost": of,
                "value": policy.row,
            }),
        };
        if let (Some(_), Value::Object(row)) = (vhost, &mut row) {
            row.remove("vhost");
        }
        match kind {
            PolicyKind::Policy => policies.push(row),
            PolicyKind::Operator => operators.push(row),
        }
    }
    (policies, operators)
}

fn insert_permissions(document: &mut Map<String, Value>, objects: &Objects) {
    let permissions = objects
        .permissions
        .iter()
        .map(|((user, vhost), permission)| super::permissions::row(user, vhost, permission));
    document.insert(String::from("permissions"), permissions.collect());
    let topics = objects.topic_permissions.iter();
    let topics = topics.map(|(key, permission)| super::permissions::topic_row(key, permission));
    document.insert(String::from("topic_permissions"), topics.collect());
}

/// The fields of a row that a document keeps.
const QUEUE_FIELDS: [&str; 5] = ["name", "vhost", "durable", "auto_delete", "arguments"];
const STREAM_FIELDS: [&str; 4] = ["name", "vhost", "configuration", "consumers"];
const EXCHANGE_FIELDS: [&str; 7] =
    ["name", "vhost", "type", "durable", "auto_delete", "internal", "arguments"];
const BINDING_FIELDS: [&str; 6] =
    ["source", "vhost", "destination", "destination_type", "routing_key", "arguments"];

async fn insert_declared(
    document: &mut Map<String, Value>,
    state: &AdminState,
    vhosts: &[VhostId],
    names_vhost: bool,
) {
    let pick = |row: &Value, fields: &[&str]| -> Value {
        let fields = fields.iter().filter(|field| names_vhost || **field != "vhost");
        fields.map(|field| ((*field).to_owned(), row[*field].clone())).collect::<Map<String, Value>>().into()
    };
    let is_kept = |row: &Value| row["durable"] == true && row["exclusive"] != true;
    let (mut queues, mut streams) = (Vec::new(), Vec::new());
    let (mut kept_queues, mut implied) = (HashSet::new(), HashSet::new());
    for vhost in vhosts {
        for (index, (name, id)) in queue_ids(&state.broker, &[*vhost]).into_iter().enumerate() {
            if let Some(row) = queue_row(state, id).filter(is_kept) {
                kept_queues.insert((*vhost, name.to_string()));
                match stream_row(state, id) {
                    Some((stream, subjects)) => {
                        let bindings = subjects.into_iter().map(|key| (*vhost, name.to_string(), key));
                        implied.extend(bindings);
                        streams.push(pick(&stream, &STREAM_FIELDS));
                    }
                    None => queues.push(pick(&row, &QUEUE_FIELDS)),
                }
            }
            rest_at(index).await;
        }
    }
    let (mut exchanges, mut bindings) = (Vec::new(), Vec::new());
    for vhost in vhosts {
        let is_own = |row: &Value| {
            let name = row["name"].as_str().unwrap_or_default();
            !name.is_empty() && !name.starts_with("amq.")
        };
        let rows: Vec<Value> = exchange_rows(&state.broker, *vhost).into_iter().filter(is_kept).collect();
        let has_exchange = |name: &str| rows.iter().any(|row| row["name"] == name);
        let has_queue = |name: &str| kept_queues.contains(&(*vhost, name.to_owned()));
        // Other bindings are deleted with their transient ends, and an importing broker would refuse them.
        let is_between_kept = |binding: &BindingFacts| {
            let leads_on = match binding.is_to_queue {
                true => has_queue(&binding.destination),
                false => has_exchange(&binding.destination),
            };
            let is_implied = binding.is_to_queue
                && binding.source.as_bytes() == TOPIC_EXCHANGE
                && implied.contains(&(*vhost, binding.destination.clone(), binding.routing_key.clone()));
            !binding.source.is_empty() && has_exchange(&binding.source) && leads_on && !is_implied
        };
        let between = bindings_where(&state.broker, *vhost, is_between_kept).await;
        bindings.extend(between.iter().map(|binding| pick(&binding_row(binding), &BINDING_FIELDS)));
        exchanges.extend(rows.iter().filter(|row| is_own(row)).map(|row| pick(row, &EXCHANGE_FIELDS)));
    }
    // Sorted, so that equal brokers export equal documents.
    exchanges.sort_by_cached_key(Value::to_string);
    bindings.sort_by_cached_key(Value::to_string);
    document.insert(String::from("queues"), queues.into());
    document.insert(String::from("exchanges"), exchanges.into());
    document.insert(String::from("bindings"), bindings.into());
    document.insert(String::from("streams"), streams.into());
}

/// A stream with its durable consumers, in the words of JetStream, and the keys of the bindings that its subjects
/// imply. `None` for another queue, and for a stream that is declared by arguments like a queue.
fn stream_row(state: &AdminState, id: QueueId) -> Option<(Value, Vec<String>)> {
    let facts = StreamFacts::of(&state.broker, id)?;
    let has_own_declaration = facts.settings.stream.as_ref().is_some_and(|stream| stream.has_own_declaration);
    let subjects = facts.config.subjects.iter();
    let keys = subjects.filter_map(|subject| Some(Pattern::nats(subject.as_bytes()).ok()?.to_string()));
    let durable = facts.consumers.iter().filter(|consumer| consumer.is_durable);
    let row = json!({
        "name": facts.name.to_string(),
        "vhost": facts.vhost,
        "configuration": facts.config,
        "consumers": durable.map(|consumer| json!(consumer.config)).collect::<Value>(),
    });
    has_own_declaration.then(|| (row, keys.collect()))
}

/// Imports a document, all or nothing. Existing objects are not deleted.
pub(super) async fn import(operator: Operator, Upload(document): Upload) -> Result<Answer, OperationError> {
    import_document(operator, document, None).await
}

/// Imports a document into one vhost.
pub(super) async fn import_vhost(operator: Operator, Body(document): Body) -> Result<Answer, OperationError> {
    let vhost = operator.in_vhost()?.name;
    import_document(operator, document, Some(vhost)).await
}

/// Imports a document. The import runs to its end even if the client disconnects first.
async fn import_document(
    operator: Operator,
    document: Map<String, Value>,
    vhost: Option<String>,
) -> Result<Answer, OperationError> {
    let import = Import::read(document, vhost.as_deref())?;
    let taking =
        async move { take_over::take_over(operator.broker(), &operator.identity, import, None).await };
    let left_out = tokio::spawn(taking).await.unwrap_or(Err(OperationError::Ended))?;
    Ok(match left_out.is_empty() {
        true => Answer::done(),
        false => Answer::of(json!({"left_out": left_out})),
    })
}
