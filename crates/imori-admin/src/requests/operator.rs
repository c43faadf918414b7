//! The operator of a request, as the handlers of both admin APIs get it.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_server::broker::Broker;

use super::admin_state::AdminState;
use super::answer::Answer;
use crate::objects::operation_error::OperationError;
use crate::operations::vhost_operator::VhostOperator;

/// The user of a request, who has logged in and may use its endpoint, and the vhost that the path names.
pub(crate) struct Operator {
    pub(crate) state: Arc<AdminState>,
    pub(crate) identity: Identity,
    /// The name of the vhost, if the path has one. The user may not see it, or it does not exist.
    vhost: Option<String>,
}

impl FromRequestParts<Arc<AdminState>> for Operator {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AdminState>) -> Result<Operator, Response> {
        let identity = parts.extensions.get::<Identity>().cloned();
        let identity = identity.ok_or_else(|| Answer::not_authorized().into_response())?;
        let params = RawPathParams::from_request_parts(parts, state).await;
        let params = params.map_err(|refusal| refusal.into_response())?;
        let vhost = params.iter().find(|(name, _)| *name == "vhost").map(|(_, vhost)| vhost.to_owned());
        Ok(Operator { state: Arc::clone(state), identity, vhost })
    }
}

impl Operator {
    pub(crate) fn broker(&self) -> &Broker {
        &self.state.broker
    }

    /// The vhosts that the user may see, by name.
    pub(crate) fn vhosts(&self) -> Vec<(Name, VhostId)> {
        self.broker().vhosts(&self.identity)
    }

    /// The vhost of the path, or all that the user may see if the path names none.
    ///
    /// # Errors
    /// The user sees no vhost of this name.
    pub(crate) fn vhost_ids(&self) -> Result<Vec<VhostId>, OperationError> {
        match self.vhost {
            None => Ok(self.vhosts().into_iter().map(|(_, vhost)| vhost).collect()),
            Some(_) => Ok(vec![self.in_vhost()?.vhost]),
        }
    }

    /// The operator in the vhost of the path.
    ///
    /// # Errors
    /// The user sees no vhost of this name.
    pub(crate) fn in_vhost(&self) -> Result<VhostOperator, OperationError> {
        VhostOperator::of(self.broker(), self.identity.clone(), self.vhost.as_deref().unwrap_or_default())
    }
}
