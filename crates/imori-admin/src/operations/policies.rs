//! Changes policies. A change is in effect before the request is answered.

use imori_core::authorize::{Action, Object, authorize};
use imori_server::access::{AccessError, Draft, PolicyKind, PolicyRow};
use imori_server::broker::Broker;
use imori_server::config::PolicySetter;
use tracing::{info, warn};

use super::vhost_operator::VhostOperator;
use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

impl VhostOperator {
    /// Sets a policy of the vhost; returns true if it is new.
    ///
    /// # Errors
    /// The user may not set policies, or the policy is invalid.
    pub(crate) async fn put_policy(
        &self,
        kind: PolicyKind,
        name: String,
        row: PolicyRow,
    ) -> Result<bool, OperationError> {
        self.check_may_set(kind)?;
        let keys = row.without_effect().join(",");
        let (pattern, definition) = (row.pattern.clone(), serde_json::json!(row.definition).to_string());
        let (vhost, shown) = (self.name.clone(), name.clone());
        let put = change_policies(&self.broker, vec![vhost.clone()], move |draft| {
            draft.put_policy((kind, &vhost, &name), row)
        });
        let is_new = put.await?;
        let (vhost, name, pattern) = (self.name.escape_debug(), shown.escape_debug(), pattern.escape_debug());
        let kind = kind.word();
        info!(kind, %name, %vhost, %pattern, definition, by = %self.identity.user, "a policy is set");
        if !keys.is_empty() {
            warn!(kind, %name, %vhost, keys, "keys of a policy have no effect here");
        }
        Ok(is_new)
    }

    /// Deletes a policy of the vhost; the next policy that matches takes effect instead.
    ///
    /// # Errors
    /// The user may not set policies, or there is no such policy.
    pub(crate) async fn delete_policy(&self, kind: PolicyKind, name: String) -> Result<(), OperationError> {
        self.check_may_set(kind)?;
        let (vhost, shown) = (self.name.clone(), name.clone());
        let deleted = change_policies(&self.broker, vec![vhost.clone()], move |draft| {
            draft.delete_policy(kind, &vhost, &name)
        });
        deleted.await?;
        let (vhost, name) = (self.name.escape_debug(), shown.escape_debug());
        info!(kind = kind.word(), %name, %vhost, by = %self.identity.user, "a policy is deleted");
        Ok(())
    }

    /// Policymakers of the vhost set policies; `users.policies` can restrict this to administrators. Only
    /// administrators set operator policies.
    fn check_may_set(&self, kind: PolicyKind) -> Result<(), OperationError> {
        let (action, object) = match (kind, self.broker.settings().config().users.policies) {
            (PolicyKind::Policy, PolicySetter::Policymaker) => (Action::SetPolicy, Object::Vhost),
            (PolicyKind::Policy, PolicySetter::Administrator) | (PolicyKind::Operator, _) => {
                (Action::Administer, Object::Broker)
            }
        };
        let decided = authorize(&self.identity, action, self.vhost, object);
        decided.map_err(|refusal| OperationError::NotPermitted(refusal.to_string()))
    }
}

/// Applies `edit` to the policies of these vhosts and puts them into effect. Runs as its own task, so that the change
/// is complete even if the client disconnects.
///
/// # Errors
/// The error of `edit`, or the broker has stopped.
pub(crate) async fn change_policies<R: Send + 'static>(
    broker: &Broker,
    vhosts: Vec<String>,
    edit: impl FnOnce(&mut Draft) -> Result<R, AccessError> + Send + 'static,
) -> Result<R, OperationError> {
    let broker = broker.clone();
    let job = async move {
        let result = change(&broker, edit).await?;
        for vhost in vhosts {
            broker.enforce_policies(vhost).await.ok_or(OperationError::Ended)?;
        }
        Ok(result)
    };
    tokio::spawn(job).await.unwrap_or(Err(OperationError::Ended))
}
