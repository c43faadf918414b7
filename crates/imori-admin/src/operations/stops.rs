//! What stops with users: the streams that republish in their names.

use imori_core::authorize::Identity;
use imori_server::broker::Broker;
use serde::Serialize;
use tracing::warn;

use super::streams::stream_ids;
use crate::objects::operation_error::OperationError;

/// What the deletion of users has stopped.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Stopped {
    /// The streams that no longer republish, until a user with the right changes or sets their configuration again.
    republishing: Vec<StoppedStream>,
}

/// A stream that no longer republishes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct StoppedStream {
    vhost: String,
    stream: String,
    /// The user in whose name it republished.
    #[serde(skip)]
    user: String,
}

/// Runs the deletion of users; returns and logs what that has stopped, if anything.
///
/// # Errors
/// Those of the deletion.
pub(crate) async fn stopping(
    broker: &Broker,
    by: &Identity,
    users: &[String],
    deletion: impl Future<Output = Result<(), OperationError>>,
) -> Result<Option<Stopped>, OperationError> {
    let republishing = republishing(broker, users).await;
    deletion.await?;
    for StoppedStream { vhost, stream, user } in &republishing {
        warn!(%user, %vhost, %stream, by = %by.user, "a deleted user's stream no longer republishes");
    }
    Ok(Some(Stopped { republishing }).filter(|stopped| !stopped.republishing.is_empty()))
}

/// The streams that republish in the name of one of these users.
pub(crate) async fn republishing(broker: &Broker, users: &[String]) -> Vec<StoppedStream> {
    let makers: Vec<(String, &String)> =
        users.iter().filter_map(|user| Some((broker.access().maker_of(user)?, user))).collect();
    let mut found = Vec::new();
    for (vhost, id) in broker.vhosts(&Identity::broker()) {
        for (stream, queue) in stream_ids(broker, &[id]).await {
            let user = broker.with_queue(queue, |queue| {
                let maker = queue.declared().maker()?;
                makers.iter().find(|(known, _)| known.as_bytes() == maker).map(|(_, user)| user.to_string())
            });
            if let Some(user) = user.flatten() {
                found.push(StoppedStream { vhost: vhost.to_string(), stream: stream.to_string(), user });
            }
        }
    }
    found
}
