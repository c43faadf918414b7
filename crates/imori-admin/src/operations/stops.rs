//! What stops with a user: the streams that republish in its name.

use imori_core::authorize::Identity;
use imori_server::broker::Broker;
use serde::Serialize;
use tracing::warn;

use super::streams::stream_ids;
use crate::objects::operation_error::OperationError;

/// What the deletion of a user has stopped.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Stopped {
    /// The streams that no longer republish, until a user with the right changes or sets their configuration again.
    republishing: Vec<StoppedStream>,
}

/// A stream that no longer republishes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
struct StoppedStream {
    vhost: String,
    stream: String,
}

/// Runs the deletion of a user; returns and logs what that has stopped, if anything.
///
/// # Errors
/// Those of the deletion.
pub(crate) async fn stopping(
    broker: &Broker,
    by: &Identity,
    user: &str,
    deletion: impl Future<Output = Result<(), OperationError>>,
) -> Result<Option<Stopped>, OperationError> {
    let mut republishing = Vec::new();
    for (vhost, id) in broker.vhosts(&Identity::broker()) {
        for (stream, queue) in stream_ids(broker, &[id]).await {
            let is_makers =
                broker.with_queue(queue, |queue| queue.declared().maker() == Some(user.as_bytes()));
            if is_makers == Some(true) {
                republishing.push(StoppedStream { vhost: vhost.to_string(), stream: stream.to_string() });
            }
        }
    }
    deletion.await?;
    for StoppedStream { vhost, stream } in &republishing {
        warn!(%user, %vhost, %stream, by = %by.user, "a deleted user's stream no longer republishes");
    }
    Ok(Some(Stopped { republishing }).filter(|stopped| !stopped.republishing.is_empty()))
}
