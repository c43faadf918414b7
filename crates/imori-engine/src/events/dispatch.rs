//! From an event to executions: one transaction stores the event, what the rules made of it, and the executions that
//! they ask for. Ids derive from the event, so that an event that comes twice makes nothing twice.

use std::fmt;
use std::sync::Arc;

use imori_automation::criteria::TriggerInstance;
use imori_automation::ids::Id;
use imori_automation::rules::{ActionCall, Matches};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tracing::warn;

use crate::engine::{Engine, rule_of};
use crate::executions::{Execution, Origin, RuleOrigin};
use crate::registry::{RegisteredRule, Registry, Trigger};
use crate::requests::DraftError;
use crate::rules::{Undo, Verdict};
use crate::store::{
    Committed, ENFORCEMENTS, EXECUTIONS, Pending, StoreError, TRIGGER_INSTANCES, Transaction,
};

/// Something that happened, and that rules may wait for.
#[derive(Debug, Clone)]
pub(crate) struct TriggerEvent {
    /// The event's id; an event with the id of an earlier one is ignored.
    pub(crate) id: Id,
    /// Its trigger.
    pub(crate) trigger: Arc<Trigger>,
    /// What the rules read.
    pub(crate) payload: Value,
    /// When it happened.
    pub(crate) occurred: Timestamp,
}

/// What the rules make of an event, on its way to the store.
struct Made {
    pending: Pending,
    executions: Vec<Execution>,
    undo: Vec<Undo>,
}

/// Why an event is refused.
#[derive(Debug)]
pub(crate) enum EventError {
    /// The event is wrong.
    Wrong(String),
    /// The store refused; the event may be sent again.
    Store(StoreError),
}

impl Engine {
    /// Stores an event and what the rules make of it; returns the executions. Nothing of it is lost once this returns.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn accept(self: &Arc<Self>, event: TriggerEvent) -> Result<Vec<Execution>, StoreError> {
        // Rules and templates read the datastore.
        self.store.reachable().await?;
        let registry = self.registry();
        let now = self.now();
        let matches =
            registry.rule_set.matches(&event.trigger.reference, &TriggerInstance::new(&event.payload, now));
        let remembers =
            matches.matched.iter().any(|rule| rule.extension.has_state() || rule.extension.limit.is_some());
        if remembers && self.store.get(&TRIGGER_INSTANCES, &event.id.to_string()).await?.is_some() {
            // The event came before, and is not counted again.
            return Ok(Vec::new());
        }
        let Made { pending, executions, undo } = self.make(&registry, &event, matches, remembers, now)?;
        let committed = pending.committed().await;
        if !matches!(committed, Ok(Committed::Done)) {
            let mut memory = self.rule_memory();
            memory.undo(undo);
            for (rule, id) in executions.iter().filter_map(|execution| rule_of(execution.document())) {
                memory.ended(rule, id);
            }
        }
        if committed? == Committed::Void {
            // The event came before, and what it asked for was stored with it.
            return Ok(Vec::new());
        }
        for execution in &executions {
            self.tell("st2.execution__create", execution.document());
            if execution.text("status") == "requested" {
                self.schedule(execution.clone());
            }
        }
        Ok(executions)
    }

    /// Hands an event and what the rules make of it to the store. While a rule remembers its matches, events are handed
    /// over in the order in which the rule has counted them.
    fn make(
        self: &Arc<Self>,
        registry: &Registry,
        event: &TriggerEvent,
        matches: Matches,
        remembers: bool,
        now: Timestamp,
    ) -> Result<Made, StoreError> {
        let instance = TriggerInstance::new(&event.payload, now);
        let mut transaction = Transaction::new();
        transaction.insert(&TRIGGER_INSTANCES, document_of(event));
        let (mut executions, mut undo) = (Vec::new(), Vec::new());
        let mut held = remembers.then(|| self.rule_memory());
        for matched in matches.matched {
            let Some(rule) = registry.rules.get(&matched.reference) else { continue };
            let subject = (&*rule.rule, rule.id());
            let (kind, changes) = (&event.trigger.kind, &mut transaction);
            let verdict = match &mut held {
                Some(memory) => memory.decide(subject, kind, &instance, changes, &mut undo),
                None => self.rule_memory().decide(subject, kind, &instance, changes, &mut undo),
            };
            match verdict {
                Verdict::Run => {
                    for (index, action) in (0..).zip(rule.rule.actions()) {
                        let (enforcement, execution) = self.enforce(event, rule, (index, action), now);
                        transaction.keep(&ENFORCEMENTS, enforcement);
                        let Some(execution) = execution else { continue };
                        transaction.keep(&EXECUTIONS, execution.document().clone());
                        if let (Some(memory), "requested") = (&mut held, execution.text("status")) {
                            memory.started(rule.id(), execution.text("id"));
                        }
                        executions.push(execution);
                    }
                }
                Verdict::Held => {}
                Verdict::Failed(reason) => {
                    transaction.keep(&ENFORCEMENTS, failed(event, rule, reason, now));
                }
            }
        }
        for (wrong, reason) in matches.failed {
            let Some(rule) = registry.rules.get(&wrong.reference) else { continue };
            warn!(rule = wrong.reference, reason, "a rule could not be matched");
            transaction.keep(&ENFORCEMENTS, failed(event, rule, reason, now));
        }
        Ok(Made { pending: self.store.submit(transaction)?, executions, undo })
    }

    /// What a rule makes of an event.
    fn enforce(
        self: &Arc<Self>,
        event: &TriggerEvent,
        rule: &RegisteredRule,
        (index, action): (u32, &ActionCall),
        now: Timestamp,
    ) -> (Map, Option<Execution>) {
        let mut enforcement = enforcement(event, rule, index, now);
        let rule_id: Id = rule.id().parse().unwrap_or_else(|_| Id::derived(0, &[rule.id().as_bytes()]));
        let id = Id::execution(event.id, rule_id, 0, index).to_string();
        let origin = Origin {
            user: self.user().to_owned(),
            rule: Some(RuleOrigin {
                rule: rule.reference().to_owned(),
                rule_id: rule.id().to_owned(),
                trigger: event.trigger.reference.clone(),
                trigger_type: event.trigger.kind.clone(),
                trigger_instance: event.id.to_string(),
            }),
            ..Origin::default()
        };
        let contexts = [("trigger", event.payload.clone())];
        match self.draft(&id, &action.reference, &action.parameters, origin, &contexts) {
            Ok(execution) => {
                enforcement.insert("status", "succeeded");
                enforcement.insert("execution_id", id);
                (enforcement, Some(execution))
            }
            Err(DraftError::Failed(reason, execution)) => {
                enforcement.insert("status", "failed");
                enforcement.insert("failure_reason", reason);
                enforcement.insert("execution_id", id);
                (enforcement, Some(execution))
            }
            Err(DraftError::Refused(error)) => {
                enforcement.insert("status", "failed");
                enforcement.insert("failure_reason", error.to_string());
                (enforcement, None)
            }
        }
    }

    /// Sends an event of a trigger that is named by its reference, as `core.inject_trigger` does. An event of a trigger
    /// without rules is stored too.
    ///
    /// # Errors
    /// The trigger is unknown, or the store refuses.
    pub(crate) async fn inject(
        self: &Arc<Self>,
        trigger: &str,
        payload: Value,
        key: Option<&str>,
    ) -> Result<Id, EventError> {
        let registry = self.registry();
        let known = registry.triggers.get(trigger).cloned();
        let of_type =
            || registry.trigger_types.get(trigger).map(|_| Arc::new(Trigger::new(trigger, Map::new())));
        let unknown = || {
            EventError::Wrong(format!("trigger `{trigger}` is unknown; register its pack or a rule for it"))
        };
        let trigger = known.or_else(of_type).ok_or_else(unknown)?;
        let occurred = self.now();
        let id = match key {
            None => self.new_id(),
            Some(key) => Id::derived(0, &[b"event", trigger.reference.as_bytes(), key.as_bytes()]),
        };
        self.accept(TriggerEvent { id, trigger, payload, occurred }).await.map_err(EventError::Store)?;
        Ok(id)
    }
}

fn document_of(event: &TriggerEvent) -> Map {
    let mut document = Map::new();
    document.insert("id", event.id.to_string());
    document.insert("trigger", event.trigger.reference.as_str());
    document.insert("payload", event.payload.clone());
    document.insert("occurrence_time", event.occurred.to_string());
    document.insert("status", "processed");
    document
}

/// The enforcement of a rule that cannot be decided.
fn failed(event: &TriggerEvent, rule: &RegisteredRule, reason: String, now: Timestamp) -> Map {
    let mut enforcement = enforcement(event, rule, 0, now);
    enforcement.insert("status", "failed");
    enforcement.insert("failure_reason", reason);
    enforcement
}

fn enforcement(event: &TriggerEvent, rule: &RegisteredRule, index: u32, now: Timestamp) -> Map {
    let parts: [&[u8]; 4] = [b"enforcement", &event.id.bytes(), rule.id().as_bytes(), &index.to_be_bytes()];
    let id = Id::derived(event.id.seconds(), &parts);
    let mut shown = Map::new();
    for key in ["ref", "id", "uid"] {
        shown.insert(key, rule.document.get(key).cloned().unwrap_or_default());
    }
    let mut document = Map::new();
    document.insert("id", id.to_string());
    document.insert("rule", shown);
    document.insert("trigger_instance_id", event.id.to_string());
    document.insert("enforced_at", now.to_string());
    document
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventError::Wrong(reason) => f.write_str(reason),
            EventError::Store(error) => error.fmt(f),
        }
    }
}
