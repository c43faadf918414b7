//! Sessions, links and consumers of connections, and closing a consumer for an operator.

use std::collections::HashMap;

use imori_amqp10::connection::SessionDetails;
use imori_core::authorize::Identity;
use imori_core::id::{ConnectionId, QueueId, Reader, ReaderId, VhostId};
use imori_core::outbound::{Credit, SessionInspection, Source};
use imori_server::broker::Broker;
use tokio::sync::oneshot;
use tracing::info;

use super::connections::{connection_ids, find_connection, find_own_connection, name};
use crate::http::rest_at;
use crate::objects::operation_error::OperationError;

/// A session of a connection.
#[derive(Debug, Clone)]
pub(crate) struct SessionFacts {
    pub(crate) connection: String,
    pub(crate) user: String,
    pub(crate) vhost: Option<String>,
    pub(crate) session: SessionInspection,
}

/// The sessions that clients opened: the user's own, or all if the user may monitor.
pub(crate) async fn session_facts(broker: &Broker, identity: &Identity) -> Vec<SessionFacts> {
    let mut all = Vec::new();
    for (index, id) in connection_ids(broker, identity).into_iter().enumerate() {
        let of_connection = broker.with_connection(id, |connection| {
            let facts = connection.facts();
            let sessions: Vec<_> = connection.outbound().open_sessions().collect();
            (name(connection), facts.user.clone(), facts.vhost, sessions)
        });
        let Some((connection, user, vhost, sessions)) = of_connection else { continue };
        let vhost = vhost.map(|vhost| broker.vhost_name(vhost));
        all.extend(sessions.into_iter().map(|session| SessionFacts {
            connection: connection.clone(),
            user: user.clone(),
            vhost: vhost.clone(),
            session,
        }));
        rest_at(index).await;
    }
    all
}

/// The sessions of a connection with their links. The connection's task answers in its next turn.
///
/// # Errors
/// The user sees no such connection, or its protocol has no links.
pub(crate) async fn session_details(
    broker: &Broker,
    identity: &Identity,
    name: &str,
) -> Result<Vec<SessionDetails>, OperationError> {
    let missing = || OperationError::Missing("connection", name.to_owned());
    let id = find_connection(broker, identity, name).await?;
    let (answer, answered) = oneshot::channel();
    let inspector = Box::new(move |details| {
        // The requester may be gone.
        let _ = answer.send(details);
    });
    broker.with_connection(id, |connection| connection.inspect(inspector)).ok_or_else(missing)?;
    // The connection may end meanwhile.
    let details = answered.await.map_err(|_| missing())?;
    let sessions = details.and_then(|details| details.downcast().ok()).map(|sessions| *sessions);
    sessions.ok_or_else(|| OperationError::Bad(String::from("connection does not use AMQP 1.0")))
}

/// A consumer of a queue.
#[derive(Debug, Clone)]
pub(crate) struct ConsumerFacts {
    pub(crate) connection: String,
    pub(crate) user: String,
    pub(crate) queue: String,
    pub(crate) vhost: String,
    pub(crate) session: u16,
    pub(crate) settles: bool,
    /// The unsettled deliveries that it may have, if it has a window of its own.
    pub(crate) prefetch: Option<u32>,
    /// The deliveries that it may get now, by its own allowance and its session's; `None` without a limit.
    pub(crate) credit: Option<u32>,
    id: ReaderId,
}

impl ConsumerFacts {
    /// The consumer's id within its connection.
    pub(crate) fn shown_id(&self) -> String {
        shown(self.id)
    }
}

fn shown(id: ReaderId) -> String {
    format!("{}-{}", id.slot, id.generation)
}

/// The consumers of clients: the user's own, or all if the user may monitor.
pub(crate) async fn consumer_facts(broker: &Broker, identity: &Identity) -> Vec<ConsumerFacts> {
    let mut all = Vec::new();
    for (index, connection) in connection_ids(broker, identity).into_iter().enumerate() {
        for consumer in consumers_of(broker, connection) {
            let found = broker.with_queue(consumer.queue, |queue| (queue.name().to_string(), queue.vhost()));
            let client = broker.with_connection(connection, |connection| {
                (name(connection), connection.facts().user.clone())
            });
            let (Some((queue, vhost)), Some((connection, user))) = (found, client) else { continue };
            let vhost: VhostId = vhost;
            all.push(ConsumerFacts {
                connection,
                user,
                queue,
                vhost: broker.vhost_name(vhost),
                session: consumer.session,
                settles: consumer.settles,
                prefetch: consumer.prefetch,
                credit: consumer.credit,
                id: consumer.id,
            });
        }
        rest_at(index).await;
    }
    all
}

/// A consumer of a connection, whose names are looked up later, without its lock.
struct ConsumerReading {
    id: ReaderId,
    queue: QueueId,
    session: u16,
    settles: bool,
    prefetch: Option<u32>,
    credit: Option<u32>,
}

fn consumers_of(broker: &Broker, id: ConnectionId) -> Vec<ConsumerReading> {
    let readers = broker.with_connection(id, |connection| {
        let outbound = connection.outbound();
        let windows: HashMap<_, _> =
            outbound.open_sessions().filter_map(|session| Some((session.id, left_of(&session)?))).collect();
        let readers = outbound.readers().filter_map(|(id, spec)| {
            let Source::Queue(queue) = spec.source else { return None };
            let (prefetch, own) = match spec.credit {
                Credit::Unlimited => (None, None),
                Credit::Window { size, used } => (Some(size), Some(size.saturating_sub(used))),
                Credit::Granted { left, .. } => (None, Some(left)),
            };
            let credit = [own, windows.get(&spec.session).copied()].into_iter().flatten().min();
            let (session, settles) = (spec.session.0, spec.settles);
            Some(ConsumerReading { id, queue, session, settles, prefetch, credit })
        });
        readers.collect::<Vec<_>>()
    });
    readers.unwrap_or_default()
}

/// The deliveries that a session's window leaves, if it has one.
fn left_of(session: &SessionInspection) -> Option<u32> {
    session.window.map(|window| window.saturating_sub(u32::try_from(session.unsettled).unwrap_or(u32::MAX)))
}

/// Closes a consumer, named by its connection and its id there.
///
/// # Errors
/// There is no such consumer, it is another user's, or the broker has stopped.
pub(crate) async fn close_consumer(
    broker: &Broker,
    identity: &Identity,
    connection: &str,
    id: &str,
    reason: &str,
) -> Result<(), OperationError> {
    let missing = || OperationError::Missing("consumer", id.to_owned());
    let found = find_own_connection(broker, identity, connection).await?;
    let mut consumers = consumers_of(broker, found).into_iter();
    let consumer = consumers.find(|consumer| shown(consumer.id) == id).ok_or_else(missing)?;
    info!(connection, consumer = id, user = %identity.user, %reason, "an operator ends a consumer");
    let reader = Reader { connection: found, id: consumer.id };
    match broker.end_consumer(reader, consumer.queue).await {
        Some(true) => Ok(()),
        Some(false) => Err(missing()),
        None => Err(OperationError::Ended),
    }
}
