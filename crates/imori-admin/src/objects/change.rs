//! Changes of the objects that operators set.

use imori_core::authorize::Identity;
use imori_server::access::{AccessError, Draft};
use imori_server::broker::Broker;
use tokio::task::spawn_blocking;

use super::operation_error::OperationError;

/// Changes the objects that operators set, on a thread that may wait for the disk.
///
/// # Errors
/// The error of `edit`, the change is refused or cannot be stored, or the broker has stopped.
pub(crate) async fn change<R: Send + 'static>(
    broker: &Broker,
    edit: impl FnOnce(&mut Draft) -> Result<R, AccessError> + Send + 'static,
) -> Result<R, OperationError> {
    let broker = broker.clone();
    match spawn_blocking(move || broker.access().change(edit)).await {
        Ok(changed) => Ok(changed?),
        Err(_) => Err(OperationError::Ended),
    }
}

/// Checks a change as [`change`] does, without making it; also returns the identity that `user` would have after it, if
/// such a user is stored then.
///
/// # Errors
/// As [`change`].
pub(crate) async fn check_change<R: Send + 'static>(
    broker: &Broker,
    user: String,
    edit: impl FnOnce(&mut Draft) -> Result<R, AccessError> + Send + 'static,
) -> Result<(R, Option<Identity>), OperationError> {
    let broker = broker.clone();
    match spawn_blocking(move || broker.access().check_change(&user, edit)).await {
        Ok(checked) => Ok(checked?),
        Err(_) => Err(OperationError::Ended),
    }
}
