//! Registering rules.

use std::sync::Arc;

use imori_automation::value::{Map, Value};

use super::change_error::RuleChangeError;
use crate::engine::Engine;
use crate::limits::OBJECTS_LOADED;
use crate::registry::RegisteredRule;
use crate::store::{Condition, Query, RULE_STATES, RULES, StoreError, Transaction};

impl Engine {
    /// Registers a new rule.
    ///
    /// # Errors
    /// The rule is wrong or exists, or the store refuses.
    pub(crate) async fn create_rule(
        self: &Arc<Self>,
        document: Map,
    ) -> Result<Arc<RegisteredRule>, RuleChangeError> {
        let _registering = self.registering().await;
        let rule =
            RegisteredRule::read(document, &self.registry().trigger_types).map_err(RuleChangeError::Wrong)?;
        if let Some(old) = self.registry().rules.get(rule.reference()) {
            return Err(RuleChangeError::Exists(old.reference().to_owned(), old.id().to_owned()));
        }
        self.store_rule(None, rule).await
    }

    /// Puts a rule in the place of another one.
    ///
    /// # Errors
    /// As for [`Engine::create_rule`].
    pub(crate) async fn change_rule(
        self: &Arc<Self>,
        old: &RegisteredRule,
        mut document: Map,
    ) -> Result<Arc<RegisteredRule>, RuleChangeError> {
        let _registering = self.registering().await;
        document.insert("id", old.id());
        let rule =
            RegisteredRule::read(document, &self.registry().trigger_types).map_err(RuleChangeError::Wrong)?;
        if rule.reference() != old.reference()
            && let Some(other) = self.registry().rules.get(rule.reference())
        {
            return Err(RuleChangeError::Exists(other.reference().to_owned(), other.id().to_owned()));
        }
        self.store_rule(Some(old.reference()), rule).await
    }

    async fn store_rule(
        self: &Arc<Self>,
        old: Option<&str>,
        rule: RegisteredRule,
    ) -> Result<Arc<RegisteredRule>, RuleChangeError> {
        let rule = Arc::new(rule);
        let mut transaction = Transaction::new();
        transaction.put(&RULES, rule.document.clone());
        if old.is_some() {
            self.rule_memory().resume(rule.id(), &mut transaction);
        }
        self.store.commit(transaction).await.map_err(RuleChangeError::Store)?;
        self.change(|registry| {
            if let Some(old) = old {
                registry.rules.remove(old);
            }
            registry.rules.insert(rule.reference().to_owned(), Arc::clone(&rule));
            registry.rebuild();
        });
        self.triggers_changed();
        Ok(rule)
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn delete_rule(self: &Arc<Self>, rule: &RegisteredRule) -> Result<(), StoreError> {
        let _registering = self.registering().await;
        let mut transaction = Transaction::new();
        transaction.delete(&RULES, rule.id());
        let states =
            Query::all(&RULE_STATES, OBJECTS_LOADED).with(Condition::Equal("rule", rule.id().into()));
        for state in self.store.find(states).await?.documents {
            transaction.delete(&RULE_STATES, state.get("id").and_then(Value::as_str).unwrap_or_default());
        }
        self.store.commit(transaction).await?;
        self.change(|registry| {
            registry.rules.remove(rule.reference());
            registry.rebuild();
        });
        self.rule_memory().forget(rule.id());
        self.triggers_changed();
        Ok(())
    }
}
