//! Declares queues, exchanges and bindings for an operator, removes and lists bindings, and publishes messages.

use axum::extract::{Path, Query};
use axum::http::HeaderValue;
use axum::http::header::LOCATION;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_core::internal::OutgoingMessage;
use imori_server::access::AccessError;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::exchanges::binding_row;
use crate::objects::declaration::{BindingDeclaration, Declaration, Ends, ExchangeDeclaration};
use crate::objects::operation_error::OperationError;
use crate::operations::publish;
use crate::operations::routing::{BindingFacts, DEFAULT_EXCHANGE, bindings_where, properties_key};
use crate::operations::vhost_operator::VhostOperator;
use crate::requests::answer::Answer;
use crate::requests::body::Body;
use crate::requests::operator::Operator;

type Pairs = Query<Vec<(String, String)>>;

/// Declares a queue; answers 201 if it is new, else 204.
pub(super) async fn put_queue(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    // `flag` also accepts booleans as text, because RabbitMQ's tools send them so.
    let declaration = Declaration::Queue {
        name,
        is_durable: body.flag("durable", true)?,
        is_auto_delete: body.flag("auto_delete", false)?,
        arguments: body.get("arguments")?.unwrap_or_default(),
    };
    Ok(Answer::put(operator.declare(declaration).await?))
}

/// Declares an exchange; answers 201 if it is new, else 204.
pub(super) async fn put_exchange(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let declaration = ExchangeDeclaration {
        name,
        kind: body.get("type")?.unwrap_or_else(|| String::from("direct")),
        is_durable: body.flag("durable", true)?,
        is_auto_delete: body.flag("auto_delete", false)?,
        is_internal: body.flag("internal", false)?,
        arguments: body.get("arguments")?.unwrap_or_default(),
    };
    Ok(Answer::put(operator.declare(Declaration::Exchange(declaration)).await?))
}

/// Deletes an exchange; with `if-unused=true` only if nothing is bound to it.
pub(super) async fn delete_exchange(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Result<Answer, OperationError> {
    let if_unused = pairs.iter().any(|(known, value)| known == "if-unused" && value == "true");
    operator.in_vhost()?.delete_exchange(&name, if_unused).await?;
    Ok(Answer::done())
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
    operator: Operator,
    Path((_, source, kind, destination)): Path<(String, String, String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(Answer::not_found()) };
    let routing_key: String = body.get("routing_key")?.unwrap_or_default();
    let arguments = body.get("arguments")?.unwrap_or_default();
    // Relative to the path of the request, whose last part is the destination.
    let key = properties_key(&routing_key, &arguments);
    let [destination, key] =
        [&ends.destination, &key].map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC));
    let place = format!("{destination}/{key}");
    let binding = BindingDeclaration { ends, routing_key, arguments };
    operator.declare(Declaration::Binding(binding)).await?;
    let place = HeaderValue::try_from(place).map_err(|error| OperationError::Bad(error.to_string()))?;
    Ok(Answer::created().with_header(LOCATION, place))
}

/// Removes the bindings between two ends that have the `properties_key` of the path.
pub(super) async fn unbind(
    operator: Operator,
    Path((_, source, kind, destination, key)): Path<(String, String, String, String, String)>,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(Answer::not_found()) };
    operator.unbind(ends, &key).await?;
    Ok(Answer::done())
}

/// Lists the bindings between two ends.
pub(super) async fn bindings(
    operator: Operator,
    Path((_, source, kind, destination)): Path<(String, String, String, String)>,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let Some(ends) = ends(source, &kind, destination) else { return Ok(Answer::not_found()) };
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
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let name = exchange_name(name);
    let is_of = |binding: &BindingFacts| match end {
        End::Source => binding.source == name,
        End::DestinationExchange => binding.destination == name && !binding.is_to_queue,
        End::DestinationQueue => binding.destination == name && binding.is_to_queue,
    };
    Ok(rows(&operator, is_of).await)
}

async fn rows(operator: &VhostOperator, is_meant: impl Fn(&BindingFacts) -> bool) -> Answer {
    let found = bindings_where(&operator.broker, operator.vhost, is_meant).await;
    Answer::of(found.iter().map(binding_row).collect())
}

/// Publishes a message, given by `routing_key`, `payload`, `payload_encoding` and `properties`. The answer says whether
/// any receiver got it.
pub(super) async fn publish(
    operator: Operator,
    Path((_, name)): Path<(String, String)>,
    body: Body,
) -> Result<Answer, OperationError> {
    let operator = operator.in_vhost()?;
    let exchange = exchange_name(name);
    if !operator.has_exchange(&exchange) {
        return Ok(Answer::not_found());
    }
    let (subject, message) = message(&body)?;
    let receivers = operator.publish(&exchange, &subject, message).await?;
    Ok(Answer::of(json!({"routed": receivers > 0})))
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
