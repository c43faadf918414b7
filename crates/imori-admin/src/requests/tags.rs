//! Checks the tags of users before the handlers of the admin listener.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use imori_core::authorize::{Action, Identity, Object, authorize};
use imori_core::id::VhostId;

use super::admin_state::AdminState;
use super::answer::Answer;
use crate::http::{Endpoint, Login};

/// The handler of an endpoint behind the check that the user has a tag that allows the endpoint's action.
///
/// RabbitMQ lets `monitoring` close connections; here it only sees them.
pub(crate) fn behind_tags(
    endpoint: &Endpoint<Arc<AdminState>>,
    state: &Arc<AdminState>,
) -> MethodRouter<Arc<AdminState>> {
    let answers = endpoint.answers();
    match endpoint.access.login {
        Login::NotNeeded => answers,
        Login::Needed | Login::NeededFromElsewhere => {
            answers.route_layer(from_fn_with_state((Arc::clone(state), endpoint.access.action), check))
        }
    }
}

/// Passes on a request whose user has a tag that allows the action.
async fn check(
    State((state, action)): State<(Arc<AdminState>, Action)>,
    Extension(identity): Extension<Identity>,
    params: RawPathParams,
    request: Request,
    next: Next,
) -> Response {
    // Policies belong to a vhost, where the tag alone is not enough. The handler answers if the vhost does not exist.
    let vhost = params.iter().find(|(name, _)| *name == "vhost" && action == Action::SetPolicy);
    let (vhost, object) = match vhost.and_then(|(_, name)| state.broker.vhost(&identity, name)) {
        Some(vhost) => (vhost, Object::Vhost),
        None => (VhostId(0), Object::Broker),
    };
    match authorize(&identity, action, vhost, object) {
        Ok(()) => next.run(request).await,
        Err(_) => Answer::not_permitted().into_response(),
    }
}
