//! Registering policies that belong to no pack's folder, and enabling those that do.

use std::sync::Arc;

use imori_automation::value::Map;

use crate::engine::Engine;
use crate::registry::{RegisteredPolicy, Registry};
use crate::store::{POLICIES, StoreError, Transaction};

/// Why a policy cannot be registered, changed or deleted.
#[derive(Debug)]
pub(crate) enum PolicyError {
    /// The policy is wrong.
    Wrong(String),
    /// A policy of this reference exists, with this id.
    Exists(String, String),
    /// The action has a policy of the type, as a sentence, with that policy's id.
    Collides(String, String),
    /// The policy belongs to the folder of this pack.
    OfPack(String),
    /// The store refused.
    Store(StoreError),
}

impl Engine {
    /// Registers a new policy.
    ///
    /// # Errors
    /// The policy is wrong, exists, or is one too many for its action, or the store refuses.
    pub(crate) async fn create_policy(
        self: &Arc<Self>,
        document: Map,
    ) -> Result<Arc<RegisteredPolicy>, PolicyError> {
        let policy = RegisteredPolicy::read(document).map_err(PolicyError::Wrong)?;
        let _registering = self.registering().await;
        check(&self.registry(), &policy, None)?;
        self.store_policy(None, policy).await
    }

    /// Puts a policy in the place of another one. Of a policy of a pack's folder, only `enabled` can be changed.
    ///
    /// # Errors
    /// As for [`Engine::create_policy`], or the policy belongs to a pack's folder.
    pub(crate) async fn change_policy(
        self: &Arc<Self>,
        old: &RegisteredPolicy,
        mut document: Map,
    ) -> Result<Arc<RegisteredPolicy>, PolicyError> {
        if !document.contains_key("pack") {
            document.insert("pack", old.text("pack"));
        }
        let mut policy = RegisteredPolicy::read(document).map_err(PolicyError::Wrong)?;
        let _registering = self.registering().await;
        if old.is_of_pack() {
            let keys = ["name", "pack", "description", "resource_ref", "policy_type", "parameters"];
            if keys.into_iter().any(|key| policy.document.get(key) != old.document.get(key)) {
                return Err(PolicyError::OfPack(old.text("pack").to_owned()));
            }
            policy = old.with_enabled(policy.is_enabled());
        }
        check(&self.registry(), &policy, Some(old))?;
        self.store_policy(Some(old), policy).await
    }

    async fn store_policy(
        self: &Arc<Self>,
        old: Option<&RegisteredPolicy>,
        policy: RegisteredPolicy,
    ) -> Result<Arc<RegisteredPolicy>, PolicyError> {
        let policy = Arc::new(policy);
        let mut transaction = Transaction::new();
        if let Some(old) = old {
            transaction.delete(&POLICIES, old.text("id"));
        }
        transaction.put(&POLICIES, policy.document.clone());
        self.store.commit(transaction).await.map_err(PolicyError::Store)?;
        self.change(|registry| {
            if let Some(old) = old {
                registry.policies.remove(old.text("ref"));
            }
            registry.policies.insert(policy.text("ref").to_owned(), Arc::clone(&policy));
            registry.index_policies();
        });
        self.apply_limits().await;
        Ok(policy)
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// The policy belongs to a pack's folder, or the store refuses.
    pub(crate) async fn delete_policy(
        self: &Arc<Self>,
        policy: &RegisteredPolicy,
    ) -> Result<(), PolicyError> {
        if policy.is_of_pack() {
            return Err(PolicyError::OfPack(policy.text("pack").to_owned()));
        }
        let _registering = self.registering().await;
        let mut transaction = Transaction::new();
        transaction.delete(&POLICIES, policy.text("id"));
        self.store.commit(transaction).await.map_err(PolicyError::Store)?;
        self.change(|registry| {
            registry.policies.remove(policy.text("ref"));
            registry.index_policies();
        });
        self.apply_limits().await;
        Ok(())
    }
}

/// Why a policy cannot be registered beside another one of its type and action.
pub(super) fn collision(policy: &RegisteredPolicy, other: &RegisteredPolicy) -> String {
    let (action, kind) = (policy.text("resource_ref"), policy.text("policy_type"));
    let other = other.text("ref");
    format!("action `{action}` has the policy `{other}` of type `{kind}`; change or delete that one")
}

/// Whether a policy may be registered, in the place of `old` if there is one.
fn check(
    registry: &Registry,
    policy: &RegisteredPolicy,
    old: Option<&RegisteredPolicy>,
) -> Result<(), PolicyError> {
    let is_old = |other: &RegisteredPolicy| old.is_some_and(|old| old.text("ref") == other.text("ref"));
    if let Some(other) = registry.policies.get(policy.text("ref")).filter(|other| !is_old(other)) {
        return Err(PolicyError::Exists(other.text("ref").to_owned(), other.text("id").to_owned()));
    }
    if let Some(other) = registry.colliding_policy(policy).filter(|other| !is_old(other)) {
        return Err(PolicyError::Collides(collision(policy, other), other.text("id").to_owned()));
    }
    Ok(())
}
