//! The sessions and links of a connection, as reported by its own task.

use imori_amqp10::connection::SessionDetails;
use imori_core::authorize::Identity;
use imori_server::broker::Broker;
use tokio::sync::oneshot;

use super::connections::find_connection;
use crate::objects::operation_error::OperationError;

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
