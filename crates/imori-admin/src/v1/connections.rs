//! `/v1/connections`, `/v1/sessions` and `/v1/consumers`: lists clients, and closes connections and consumers.

use std::net::SocketAddr;

use imori_core::id::ConnectionId;
use imori_server::broker::{Broker, PublisherWait};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::milliseconds::since_epoch;
use crate::objects::operation_error::OperationError;
use crate::operations::connections::{
    ConnectionFacts, client_properties, close_connection, connection_ids, find_connection, name,
};
use crate::operations::readers::{
    ConsumerFacts, SessionFacts, close_consumer, consumer_facts, session_facts,
};
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// The default reason sent to the client.
const CLOSED: &str = "closed by an operator";

/// A client's connection.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Connection {
    /// The addresses of both ends.
    name: String,
    /// The name that the client chose for the connection.
    client_name: Option<String>,
    protocol: String,
    user: String,
    vhost: Option<String>,
    /// `starting`, `running` or `closing`.
    state: &'static str,
    /// What the client's next publish waits for: a slow `reader`, an `alarm` of memory or disk, a `queue` that has to
    /// become shorter, or the publish `rate` of its user or vhost.
    waits_for: Option<&'static str>,
    /// The client's address.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    peer: SocketAddr,
    /// The broker's address.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    local: SocketAddr,
    /// Start time, in milliseconds since the UNIX epoch.
    connected_at: u64,
    sessions: usize,
    received_bytes: u64,
    sent_bytes: u64,
    /// Bytes queued for the client and not yet sent.
    unsent_bytes: usize,
    /// The container id of an AMQP 1.0 client.
    container_id: Option<String>,
    /// Negotiated heart-beat interval in seconds; in AMQP 1.0, the idle time-out.
    heartbeat_s: Option<u16>,
    /// Properties that the client sent about itself.
    client_properties: Map<String, Value>,
}

impl Connection {
    fn of(broker: &Broker, id: ConnectionId) -> Option<Connection> {
        let facts = ConnectionFacts::of(broker, id)?;
        let client_properties = client_properties(&facts.client);
        let client_name = client_properties.get("connection_name").and_then(Value::as_str).map(str::to_owned);
        let is_container = facts.client.protocol == imori_amqp10::PROTOCOL;
        Some(Connection {
            name: facts.name,
            container_id: is_container.then_some(facts.client.name),
            heartbeat_s: facts.client.heartbeat_s,
            client_name,
            protocol: facts.client.protocol,
            user: facts.client.user,
            vhost: facts.client.vhost.map(|vhost| broker.vhost_name(vhost)),
            state: facts.state.word(),
            waits_for: facts.waits_for.map(PublisherWait::word),
            peer: facts.source,
            local: facts.local,
            connected_at: since_epoch(facts.since),
            sessions: facts.sessions,
            received_bytes: facts.received_bytes,
            sent_bytes: facts.sent_bytes,
            unsent_bytes: facts.unsent_bytes,
            client_properties,
        })
    }
}

/// Lists your connections, or all connections if you may monitor the broker.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/connections", tag = "connections",
    params(PageQuery),
    responses((status = 200, body = Page<Connection>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Connection>> {
    let keys = connection_ids(operator.broker(), &operator.identity);
    let name_of = |id: &ConnectionId| operator.broker().with_connection(*id, |connection| name(connection));
    page(query, keys, name_of, |id| Connection::of(operator.broker(), *id)).await
}

/// One connection.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/connections/{name}", tag = "connections",
    params(("name" = String, Path)),
    responses((status = 200, body = Connection)),
))]
pub(super) async fn show(operator: Operator, Names(name): Names<String>) -> Answered<Connection> {
    let id = find_connection(operator.broker(), &operator.identity, &name).await?;
    let found = Connection::of(operator.broker(), id);
    Ok(Answer::of(found.ok_or(OperationError::Missing("connection", name))?))
}

/// Options of a close.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct CloseQuery {
    /// The reason sent to the client.
    #[serde(default)]
    reason: Option<String>,
}

impl CloseQuery {
    fn reason(&self) -> &str {
        self.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or(CLOSED)
    }
}

/// Closes a connection and sends its client the reason.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/connections/{name}", tag = "connections",
    params(("name" = String, Path), CloseQuery),
    responses((status = 204, description = "it is closed")),
))]
pub(super) async fn close(
    operator: Operator,
    Names(name): Names<String>,
    Params(query): Params<CloseQuery>,
) -> Result<Answer, Problem> {
    close_connection(operator.broker(), &operator.identity, &name, query.reason()).await?;
    Ok(Answer::done())
}

/// A session of a connection; AMQP 0-9-1 calls it a channel.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Session {
    connection: String,
    /// The session's number in its connection.
    number: u16,
    user: String,
    vhost: Option<String>,
    /// Number of consumers and subscriptions.
    consumers: usize,
    /// Number of unsettled deliveries.
    unsettled: usize,
    /// Maximum number of unsettled deliveries, if limited.
    unsettled_max: Option<u32>,
    /// Number of deliveries so far.
    delivered: u64,
}

impl From<SessionFacts> for Session {
    fn from(facts: SessionFacts) -> Session {
        let SessionFacts { connection, user, vhost, session } = facts;
        Session {
            connection,
            number: session.id.0,
            user,
            vhost,
            consumers: session.readers,
            unsettled: session.unsettled,
            unsettled_max: session.window,
            delivered: session.delivered,
        }
    }
}

/// Lists the sessions of your connections, or of all connections if you may monitor the broker.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/sessions", tag = "connections",
    params(PageQuery),
    responses((status = 200, body = Page<Session>)),
))]
pub(super) async fn sessions(
    operator: Operator,
    Params(query): Params<PageQuery>,
) -> Answered<Page<Session>> {
    let rows = session_facts(operator.broker(), &operator.identity).await;
    page(query, rows, |row| Some(row.connection.clone()), |row| Some(row.clone().into())).await
}

/// A consumer of a queue.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Consumer {
    connection: String,
    /// Identifies the consumer in its connection; a request to end the consumer names it.
    id: String,
    user: String,
    queue: String,
    vhost: String,
    /// The number of the consumer's session.
    session: u16,
    /// Whether the consumer settles its deliveries.
    settles: bool,
    /// Maximum number of its unsettled deliveries, if it has one of its own.
    prefetch: Option<u32>,
    /// Number of deliveries that it may get now, by its own limit and its session's; null without a limit.
    credit: Option<u32>,
}

impl From<ConsumerFacts> for Consumer {
    fn from(facts: ConsumerFacts) -> Consumer {
        Consumer {
            id: facts.shown_id(),
            connection: facts.connection,
            user: facts.user,
            queue: facts.queue,
            vhost: facts.vhost,
            session: facts.session,
            settles: facts.settles,
            prefetch: facts.prefetch,
            credit: facts.credit,
        }
    }
}

/// Selects a page of the list of consumers.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct ConsumersQuery {
    /// Page number, from 1.
    #[cfg_attr(feature = "openapi", param(minimum = 1, default = 1))]
    page: Option<usize>,
    /// Rows per page.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500, default = 100))]
    page_size: Option<usize>,
    /// A part of the queues' names; case does not matter.
    name: Option<String>,
    /// Only the consumers of the queues of this vhost.
    vhost: Option<String>,
    /// Only the consumers of the queue of this very name.
    queue: Option<String>,
    /// Only the consumers of the connection of this name.
    connection: Option<String>,
}

/// Lists the consumers of your connections, or of all connections if you may monitor the broker.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/consumers", tag = "connections",
    params(ConsumersQuery),
    responses((status = 200, body = Page<Consumer>)),
))]
pub(super) async fn consumers(
    operator: Operator,
    Params(query): Params<ConsumersQuery>,
) -> Answered<Page<Consumer>> {
    let ConsumersQuery { page: number, page_size, name, vhost, queue, connection } = query;
    let mut rows = consumer_facts(operator.broker(), &operator.identity).await;
    let is_asked_for = |asked: &Option<String>, is: &str| asked.as_deref().is_none_or(|asked| asked == is);
    rows.retain(|row| {
        is_asked_for(&vhost, &row.vhost)
            && is_asked_for(&queue, &row.queue)
            && is_asked_for(&connection, &row.connection)
    });
    let query = PageQuery::new(number, page_size, name);
    page(query, rows, |row| Some(row.queue.clone()), |row| Some(row.clone().into())).await
}

/// Ends a consumer. The client is told of the cancellation if its protocol can say so; otherwise its connection ends.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/consumers/{connection}/{id}", tag = "connections",
    params(("connection" = String, Path), ("id" = String, Path), CloseQuery),
    responses((status = 204, description = "it is ended")),
))]
pub(super) async fn end_consumer(
    operator: Operator,
    Names((connection, id)): Names<(String, String)>,
    Params(query): Params<CloseQuery>,
) -> Result<Answer, Problem> {
    close_consumer(operator.broker(), &operator.identity, &connection, &id, query.reason()).await?;
    Ok(Answer::done())
}
