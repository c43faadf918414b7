//! Queues, exchanges and bindings that an operator declares, and messages that an operator publishes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_amqp091::codec::methods::{exchange, queue};
use imori_amqp091::codec::table::Table;
use imori_amqp091::operator::Operator;
use imori_core::authorize::Identity;
use imori_core::confirm::Confirm;
use imori_core::id::VhostId;
use imori_core::internal::OutgoingMessage;
use imori_core::message::{Address, Property};
use imori_core::name::Name;
use serde_json::{Map, Value, json};

use super::exchanges::bindings_where;
use crate::access::AccessError;
use crate::cell::Cell;
use crate::internal::InternalClients;
use crate::requests::administered::Administered;
use crate::requests::answer::{
    access_refused, bad_request, created, done, ended, json_with, not_found, refused_in_words,
};
use crate::requests::arguments::table_of;
use crate::requests::body::Body;
use crate::requests::on_cell::{is_kept, on_cell, operator};

type Broker = State<Arc<Administered>>;
type Pairs = Query<Vec<(String, String)>>;

/// A name in a path that stands for the default exchange.
const DEFAULT_EXCHANGE: &str = "amq.default";

/// Does something in a turn of a cell in the name of an operator; answers with `success` once no crash undoes it.
async fn declare(
    broker: &Arc<Administered>,
    identity: Identity,
    vhost: VhostId,
    success: Response,
    act: impl FnOnce(&Cell, &Operator) -> Result<Confirm, String> + Send + 'static,
) -> Response {
    let vhost_name = Name::from(broker.vhost_name(vhost).as_str());
    let outcome = on_cell(&broker.shared, 0, move |cell| {
        let settings = Arc::clone(&cell.settings().protocols.amqp);
        let operator = Operator::new(settings, &operator(&identity, vhost), vhost_name);
        act(cell, &operator)
    });
    match outcome.await {
        Some(Ok(confirm)) if is_kept(&broker.shared, confirm).await => success,
        Some(Ok(_)) | None => ended(),
        Some(Err(text)) => refused_in_words(&text),
    }
}

/// The arguments of a declaration, and its flags.
struct Declaration {
    durable: bool,
    auto_delete: bool,
    internal: bool,
    kind: String,
    table: Vec<u8>,
}

impl Declaration {
    /// Reads a body. Numbers and truth values may be written as text, as RabbitMQ's tools do.
    fn read(body: &Body) -> Result<Declaration, AccessError> {
        let arguments: Map<String, Value> = body.get("arguments")?.unwrap_or_default();
        Ok(Declaration {
            durable: body.flag("durable", true)?,
            auto_delete: body.flag("auto_delete", false)?,
            internal: body.flag("internal", false)?,
            kind: body.get("type")?.unwrap_or_else(|| String::from("direct")),
            table: table_of(&arguments),
        })
    }
}

/// Declares what a body says: 201 where it is new.
async fn put(
    broker: &Arc<Administered>,
    identity: Identity,
    vhost: VhostId,
    (body, is_there): (&Body, bool),
    act: impl FnOnce(&Cell, &Operator, &Declaration) -> Result<Confirm, String> + Send + 'static,
) -> Response {
    let declaration = match Declaration::read(body) {
        Ok(declaration) => declaration,
        Err(error) => return access_refused(&error),
    };
    let success = if is_there { done() } else { created() };
    let act = move |cell: &Cell, operator: &Operator| act(cell, operator, &declaration);
    declare(broker, identity, vhost, success, act).await
}

/// Reads the fields of a table that was just written.
fn table(bytes: &[u8]) -> Result<Table<'_>, String> {
    Table::new(bytes).map_err(|error| format!("PRECONDITION_FAILED - the arguments are no table: {error}"))
}

/// Declares a queue.
pub(super) async fn put_queue(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let is_there = broker.shared.table.load().queue(vhost, name.as_bytes()).is_some();
    let act = move |cell: &Cell, operator: &Operator, declaration: &Declaration| {
        let Declaration { durable, auto_delete, table: bytes, .. } = declaration;
        let (durable, auto_delete, arguments) = (*durable, *auto_delete, table(bytes)?);
        let declare = queue::Declare { queue: &name, durable, auto_delete, arguments, ..Default::default() };
        operator.declare_queue(cell, &declare)
    };
    put(&broker, identity, vhost, (&body, is_there), act).await
}

/// Declares an exchange.
pub(super) async fn put_exchange(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let is_there = broker.shared.table.load().exchange(vhost, name.as_bytes()).is_some();
    let act = move |cell: &Cell, operator: &Operator, declaration: &Declaration| {
        let Declaration { durable, auto_delete, internal, kind, table: bytes } = declaration;
        let declare = exchange::Declare {
            exchange: &name,
            kind,
            durable: *durable,
            auto_delete: *auto_delete,
            internal: *internal,
            arguments: table(bytes)?,
            ..Default::default()
        };
        operator.declare_exchange(cell, &declare)
    };
    put(&broker, identity, vhost, (&body, is_there), act).await
}

/// Deletes an exchange, with `if-unused=true` only if nothing is bound to it.
pub(super) async fn delete_exchange(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    Query(pairs): Pairs,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    if broker.shared.table.load().exchange(vhost, name.as_bytes()).is_none() {
        return not_found();
    }
    let if_unused = pairs.iter().any(|(known, value)| known == "if-unused" && value == "true");
    let act = move |cell: &Cell, operator: &Operator| {
        operator.delete_exchange(cell, &exchange::Delete { exchange: &name, if_unused, no_wait: false })
    };
    declare(&broker, identity, vhost, done(), act).await
}

/// The two ends of a binding in a path: the exchange, and behind `q` a queue or behind `e` an exchange.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    source: String,
    destination: String,
    is_queue: bool,
}

impl Ends {
    /// Reads both ends; `None` where the path says neither `q` nor `e`.
    pub(super) fn read(source: String, kind: &str, destination: String) -> Option<Ends> {
        let is_queue = match kind {
            "q" => true,
            "e" => false,
            _ => return None,
        };
        let named = |name: String| if name == DEFAULT_EXCHANGE { String::new() } else { name };
        Some(Ends { source: named(source), destination, is_queue })
    }

    /// Says that the row of a binding is between these ends.
    pub(super) fn are_of(&self, row: &Value) -> bool {
        let kind = if self.is_queue { "queue" } else { "exchange" };
        row["source"] == self.source
            && row["destination"] == self.destination
            && row["destination_type"] == kind
    }

    fn set(
        &self,
        cell: &Cell,
        operator: &Operator,
        (routing_key, bytes): (&str, &[u8]),
        is_bound: bool,
    ) -> Result<Confirm, String> {
        let (arguments, no_wait) = (table(bytes)?, false);
        let (source, destination) = (self.source.as_str(), self.destination.as_str());
        if self.is_queue {
            let bind = queue::Bind { queue: destination, exchange: source, routing_key, no_wait, arguments };
            operator.bind_queue(cell, &bind, is_bound)
        } else {
            let bind = exchange::Bind { destination, source, routing_key, no_wait, arguments };
            operator.bind_exchange(cell, &bind, is_bound)
        }
    }
}

/// Binds a queue or an exchange.
pub(super) async fn bind(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination)): Path<(String, String, String, String)>,
    body: Body,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let Some(ends) = Ends::read(source, &kind, destination) else { return not_found() };
    let read =
        || Ok((body.get("routing_key")?.unwrap_or_default(), body.get("arguments")?.unwrap_or_default()));
    let (routing_key, arguments): (String, Map<String, Value>) = match read() {
        Ok(read) => read,
        Err(error) => return access_refused(&error),
    };
    let success = (StatusCode::CREATED, [(LOCATION, "~")]).into_response();
    let bytes = table_of(&arguments);
    let act = move |cell: &Cell, operator: &Operator| ends.set(cell, operator, (&routing_key, &bytes), true);
    declare(&broker, identity, vhost, success, act).await
}

/// Takes bindings out: those between both ends whose `properties_key` the path names.
pub(super) async fn unbind(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination, key)): Path<(String, String, String, String, String)>,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let Some(ends) = Ends::read(source, &kind, destination) else { return not_found() };
    let is_meant = |row: &Value| ends.are_of(row) && row["properties_key"] == key;
    let rows = bindings_where(&broker, vhost, is_meant).await;
    let Some(row) = rows.first() else { return not_found() };
    let routing_key = row["routing_key"].as_str().unwrap_or_default().to_owned();
    let bytes = table_of(row["arguments"].as_object().unwrap_or(&Map::new()));
    let act = move |cell: &Cell, operator: &Operator| ends.set(cell, operator, (&routing_key, &bytes), false);
    declare(&broker, identity, vhost, done(), act).await
}

/// The bindings between two ends.
pub(super) async fn bindings(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, source, kind, destination)): Path<(String, String, String, String)>,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let Some(ends) = Ends::read(source, &kind, destination) else { return not_found() };
    json_with(StatusCode::OK, &Value::Array(bindings_where(&broker, vhost, |row| ends.are_of(row)).await))
}

/// The bindings at one end: this field of a binding, besides its type, has the name of the path.
pub(super) async fn bindings_at(
    (field, kind): (&'static str, Option<&'static str>),
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
) -> Response {
    let Some(vhost) = broker.vhost(&identity, &vhost) else { return not_found() };
    let name = if name == DEFAULT_EXCHANGE { String::new() } else { name };
    let is_of = |row: &Value| row[field] == name && kind.is_none_or(|kind| row["destination_type"] == kind);
    json_with(StatusCode::OK, &Value::Array(bindings_where(&broker, vhost, is_of).await))
}

/// Publishes a message: `routing_key`, `payload`, `payload_encoding` and `properties`, and tells whether it was routed.
pub(super) async fn publish(
    State(broker): Broker,
    Extension(identity): Extension<Identity>,
    Path((vhost, name)): Path<(String, String)>,
    body: Body,
) -> Response {
    let Some(id) = broker.vhost(&identity, &vhost) else { return not_found() };
    let exchange = if name == DEFAULT_EXCHANGE { String::new() } else { name };
    if broker.shared.table.load().exchange(id, exchange.as_bytes()).is_none() {
        return not_found();
    }
    let (subject, message) = match message(&body) {
        Ok(read) => read,
        Err(error) => return access_refused(&error),
    };
    let clients = InternalClients::of(&broker.shared);
    let client = match clients.connect(identity, vhost.as_bytes()).await {
        Ok(client) => client,
        Err(error) => return bad_request(&error.to_string()),
    };
    let to = Address::new(exchange.as_bytes(), subject.as_bytes());
    match client.publish(to, message).await {
        Ok(receivers) => json_with(StatusCode::OK, &json!({"routed": receivers > 0})),
        Err(error) => bad_request(&error.to_string()),
    }
}

/// Reads a message to be published, and its routing key.
fn message(body: &Body) -> Result<(String, OutgoingMessage), AccessError> {
    let subject: String = body.required("routing_key")?;
    let payload: String = body.required("payload")?;
    let encoding: String = body.get("payload_encoding")?.unwrap_or_else(|| String::from("string"));
    let payload = match encoding.as_str() {
        "string" => payload.into_bytes(),
        "base64" => BASE64_STANDARD
            .decode(payload)
            .map_err(|error| AccessError::bad(format_args!("`payload`: {error}")))?,
        _ => return Err(AccessError::bad("`payload_encoding` is `string` or `base64`")),
    };
    let properties: Map<String, Value> = body.get("properties")?.unwrap_or_default();
    let mut message = OutgoingMessage::new(payload);
    let known = [
        ("content_type", Property::ContentType),
        ("content_encoding", Property::ContentEncoding),
        ("correlation_id", Property::CorrelationId),
        ("reply_to", Property::ReplyTo),
        ("message_id", Property::MessageId),
        ("type", Property::Type),
        ("app_id", Property::AppId),
    ];
    for (name, property) in known {
        if let Some(text) = properties.get(name).and_then(Value::as_str) {
            message = message.with(property, text.as_bytes());
        }
    }
    message.properties.is_persistent = properties.get("delivery_mode").and_then(Value::as_u64) == Some(2);
    for (name, value) in properties.get("headers").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        message = message.header(name.as_bytes(), text.as_bytes());
    }
    Ok((subject, message))
}
