//! Declares queues, exchanges and bindings for an operator, removes and lists bindings, and publishes messages.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::authorize::Identity;
use imori_core::internal::OutgoingMessage;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::exchanges::binding_row;
use crate::access::AccessError;
use crate::operations::publish;
use crate::operations::routing::{BindingFacts, DEFAULT_EXCHANGE, bindings_where, properties_key};
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::administered::Administered;
use crate::requests::answer::{created, done, json_with, not_found};
use crate::requests::body::Body;
use crate::requests::declaration::{BindingDeclaration, Declaration, Ends, ExchangeDeclaration};
use crate::requests::operation_error::OperationError;

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;
type Answer = Result<Response, OperationError>;

fn declared(is_new: bool) -> Response {
    if is_new { created() } else { done() }
}

/// Declares a queue; answers 201 if it is new, else 204.
pub(super) async fn put_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    // `flag` also accepts booleans as text, because RabbitMQ's tools send them so.
    let declaration = Declaration::Queue {
        name,
        is_durable: body.flag("durable", true)?,
        is_auto_delete: body.flag("auto_delete", false)?,
        arguments: body.get("arguments")?.unwrap_or_default(),
    };
    Ok(declared(operator.declare(declaration).await?))
}

/// Declares an exchange; answers 201 if it is new, else 204.
pub(super) async fn put_exchange(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let declaration = ExchangeDeclaration {
        name,
        kind: body.get("type")?.unwrap_or_else(|| String::from("direct")),
        is_durable: body.flag("durable", true)?,
        is_auto_delete: body.flag("auto_delete", false)?,
        is_internal: body.flag("internal", false)?,
        arguments: body.get("arguments")?.unwrap_or_default(),
    };
    Ok(declared(operator.declare(Declaration::Exchange(declaration)).await?))
}

/// Deletes an exchange; with `if-unused=true` only if nothing is bound to it.
pub(super) async fn delete_exchange(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Answer {
    let if_unused = pairs.iter().any(|(known, value)| known == "if-unused" && value == "true");
    VhostOperator::of(&broker, identity, &vhost)?.delete_exchange(&name, if_unused).await?;
    Ok(done())
}

/// The two ends of a binding, as a path names them: the source exchange, then `q` and a queue or `e` and an exchange.
/// `None` if `kind` is neither.
fn ends(source: String, kind: &str, destination: String) -> Option<Ends> {
    let is_to_queue = match kind {
        "q" => true,
        "e" => false,
        _ => return None,
    };
    Some(Ends { source: exchange_name(source), destination, is_to_queue })
}

fn exchange_name(name: String) -> String {
    if name == DEFAULT_EXCHANGE { String::new() } else { name }
}

/// Binds a queue or an exchange.
pub(super) async fn bind(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination)): Path<(String, String, String, String)>,
    body: Body,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(not_found()) };
    let routing_key: String = body.get("routing_key")?.unwrap_or_default();
    let arguments = body.get("arguments")?.unwrap_or_default();
    // Relative to the path of the request, whose last part is the destination.
    let key = properties_key(&routing_key, &arguments);
    let [destination, key] =
        [&ends.destination, &key].map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC));
    let place = format!("{destination}/{key}");
    let binding = BindingDeclaration { ends, routing_key, arguments };
    operator.declare(Declaration::Binding(binding)).await?;
    Ok((StatusCode::CREATED, [(LOCATION, place)]).into_response())
}

/// Removes the bindings between two ends that have the `properties_key` of the path.
pub(super) async fn unbind(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination, key)): Path<(String, String, String, String, String)>,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(not_found()) };
    operator.unbind(ends, &key).await?;
    Ok(done())
}

/// Lists the bindings between two ends.
pub(super) async fn bindings(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination)): Path<(String, String, String, String)>,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(not_found()) };
    Ok(rows(&operator, |binding| ends.are_of(binding)).await)
}

/// The end at which a path selects bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Source,
    DestinationExchange,
    DestinationQueue,
}

/// Lists the bindings that have the named exchange or queue at this end.
pub(super) async fn bindings_at(
    end: End,
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let name = exchange_name(name);
    let is_of = |binding: &BindingFacts| match end {
        End::Source => binding.source == name,
        End::DestinationExchange => binding.destination == name && !binding.is_to_queue,
        End::DestinationQueue => binding.destination == name && binding.is_to_queue,
    };
    Ok(rows(&operator, is_of).await)
}

async fn rows(operator: &VhostOperator, is_meant: impl Fn(&BindingFacts) -> bool) -> Response {
    let found = bindings_where(&operator.broker, operator.vhost, is_meant).await;
    json_with(StatusCode::OK, &found.iter().map(binding_row).collect())
}

/// Publishes a message, given by `routing_key`, `payload`, `payload_encoding` and `properties`. The answer says whether
/// any receiver got it.
pub(super) async fn publish(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Answer {
    let operator = VhostOperator::of(&broker, identity, &vhost)?;
    let exchange = exchange_name(name);
    if !operator.has_exchange(&exchange) {
        return Ok(not_found());
    }
    let (subject, message) = message(&body)?;
    let receivers = operator.publish(&exchange, &subject, message).await?;
    Ok(json_with(StatusCode::OK, &json!({"routed": receivers > 0})))
}

/// Reads the routing key and the message to publish.
fn message(body: &Body) -> Result<(String, OutgoingMessage), OperationError> {
    let subject: String = body.required("routing_key")?;
    let payload: String = body.required("payload")?;
    let encoding: String = body.get("payload_encoding")?.unwrap_or_else(|| String::from("string"));
    let payload = match encoding.as_str() {
        "string" => payload.into_bytes(),
        "base64" => BASE64_STANDARD
            .decode(payload)
            .map_err(|error| AccessError::bad(format_args!("`payload`: {error}")))?,
        _ => return Err(AccessError::bad("`payload_encoding` is `string` or `base64`").into()),
    };
    let properties: Map<String, Value> = body.get("properties")?.unwrap_or_default();
    Ok((subject, publish::message(payload, &properties)?))
}
