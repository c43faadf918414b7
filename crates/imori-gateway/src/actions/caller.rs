//! The client of a request's user, and what is said when it is refused.

use http::{Response, StatusCode};
use imori_core::authorize::Identity;
use imori_server::{InternalClient, InternalError};

use crate::facts::Facts;
use crate::respond::{Body, problem, refused};
use crate::worker::Worker;

/// The client that acts for the user of a request.
///
/// # Errors
/// The response to a request without a user, or whose user may not enter the vhost.
pub(super) async fn client_of(
    worker: &Worker,
    facts: &Facts,
    identity: Option<&Identity>,
) -> Result<InternalClient, Response<Body>> {
    let Some(identity) = identity else {
        return Err(problem(StatusCode::UNAUTHORIZED, "nobody acts for this request; log in"));
    };
    let client = worker.callers.client(identity, &facts.route.vhost).await;
    client.map_err(|error| refused(&error))
}

/// The response to a request that the broker has refused; a client that has ended is forgotten.
pub(super) fn refuse(worker: &Worker, identity: Option<&Identity>, error: &InternalError) -> Response<Body> {
    if matches!(error, InternalError::Ended(_))
        && let Some(identity) = identity
    {
        worker.callers.forget(identity);
    }
    refused(error)
}
