//! The action that the user of a request has to be allowed, before the answers of a path are asked.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::MethodRouter;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;

use super::administered::Administered;
use super::answer::not_permitted;

/// Asks that the user of a request is allowed an action.
pub(crate) fn needs(
    action: Action,
    answers: MethodRouter<Arc<Administered>>,
) -> MethodRouter<Arc<Administered>> {
    answers.route_layer(from_fn_with_state(action, check))
}

/// Lets a request through whose user is allowed the action.
async fn check(
    State(action): State<Action>,
    Extension(identity): Extension<Identity>,
    request: Request,
    next: Next,
) -> Response {
    match authorize(&identity, action, VhostId(0), Object::Broker) {
        Ok(()) => next.run(request).await,
        Err(_) => not_permitted(),
    }
}
