//! Concurrency policies at the scheduler. The places of executions are in memory alone: a start counts those that the
//! store has as begun, and requests the others again.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_automation::concurrency::{Admission, NamedPolicy, Refusal};
use imori_automation::value::{Map, Value};
use tracing::error;

use crate::engine::Engine;
use crate::executions::{Execution, Status};
use crate::limits::EXECUTIONS_LOADED;
use crate::runners::Outcome;
use crate::store::{Committed, Condition, EXECUTIONS, Pending, Query, StoreError, Transaction};

impl Engine {
    /// Queues an execution that is due, unless a policy of its action delays or cancels it.
    pub(super) fn admit(self: &Arc<Self>, execution: Execution) {
        let (action, id) = (execution.text("action").to_owned(), execution.text("id").to_owned());
        let mut delayed = None;
        let delay = |execution: &mut Execution| {
            if execution.text("status") != Status::Delayed.as_str() {
                execution.note(Status::Delayed, self.now());
                // Under the lock, so that the store has the delay before a start that follows.
                delayed = Some((execution.document().clone(), self.submit_delay(execution)));
            }
        };
        let admission = self.concurrency().request((&action, &id), execution, parameters, delay);
        if let Some((document, submitted)) = delayed {
            let engine = Arc::clone(self);
            self.runtime.spawn(async move { engine.note_delay(document, submitted).await });
        }
        self.carry_out_admissions(admission);
    }

    fn submit_delay(&self, execution: &Execution) -> Result<Pending, StoreError> {
        let mut transaction = Transaction::new();
        let requested = vec![Status::Requested.as_str().into()];
        transaction.require(&EXECUTIONS, execution.text("id"), "status", requested);
        transaction.put(&EXECUTIONS, execution.document().clone());
        self.store.submit(transaction)
    }

    /// Tells of a delay that is stored; forgets an execution that has ended before.
    async fn note_delay(self: &Arc<Self>, document: Map, submitted: Result<Pending, StoreError>) {
        let committed = match submitted {
            Ok(pending) => pending.committed().await,
            Err(error) => Err(error),
        };
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
        match committed {
            Ok(Committed::Done) => self.tell("st2.execution__update", &document),
            Ok(Committed::Void) => self.free(text("action"), text("id")),
            // It waits all the same, and is stored as requested.
            Err(error) => error!(execution = text("id"), %error, "the delay of an execution is not stored"),
        }
    }

    /// Counts an execution that begins, if it was admitted before its action had these policies.
    pub(super) fn begin(&self, execution: &Execution) {
        let (action, id) = (execution.text("action"), execution.text("id"));
        let mut concurrency = self.concurrency();
        if concurrency.is_limited(action) && !concurrency.holds(action, id) {
            concurrency.begin(action, id, &parameters(execution));
        }
    }

    /// Frees the places of an execution that has ended, for those that wait.
    pub(crate) fn free(self: &Arc<Self>, action: &str, id: &str) {
        let decided = self.concurrency().end(action, id);
        self.carry_out_admissions(decided);
    }

    /// Frees the places of a workflow or an inquiry that was not started, because it has ended before.
    pub(super) async fn free_if_ended(self: &Arc<Self>, action: &str, id: &str) {
        if !self.concurrency().holds(action, id) {
            return;
        }
        let stored = self.store.get(&EXECUTIONS, id).await;
        let status = |document: &Map| document.get("status").and_then(Value::as_str).map(str::to_owned);
        match stored.map(|found| found.as_ref().and_then(status)) {
            Ok(Some(status)) if !Status::is_final(&status) => {}
            _ => self.free(action, id),
        }
    }

    fn carry_out_admissions(self: &Arc<Self>, decided: impl IntoIterator<Item = Admission<Execution>>) {
        for admission in decided {
            match admission {
                Admission::Run(execution) => {
                    self.queue.push(execution);
                    self.advance();
                }
                Admission::Cancel(execution, refusal) => {
                    let engine = Arc::clone(self);
                    self.runtime.spawn(async move { engine.finish(execution, canceled(&refusal)).await });
                }
            }
        }
    }

    /// Counts executions by the policies that are registered now, and requests those again that waited for others.
    /// The caller holds the lock of [`Engine::registering`].
    pub(crate) async fn apply_limits(self: &Arc<Self>) {
        let registry = self.registry();
        let changes = {
            let mut concurrency = self.concurrency();
            let changes = concurrency.changes(registry.action_policies.limits());
            changes.keys().for_each(|action| concurrency.load(action));
            changes
        };
        if changes.is_empty() {
            return;
        }
        let mut begun = self.begun(&changes).await.unwrap_or_else(|error| {
            error!(%error, "executions that run are not counted by new policies");
            BTreeMap::new()
        });
        for (action, policies) in changes {
            let running = begun.remove(&action).unwrap_or_default();
            let waiting = self.concurrency().set(&action, policies, running);
            waiting.into_iter().for_each(|execution| self.admit(execution));
        }
    }

    /// The ids and parameters of the executions of these actions that have begun and not ended.
    async fn begun(
        &self,
        actions: &BTreeMap<String, Vec<NamedPolicy>>,
    ) -> Result<BTreeMap<String, Vec<(String, Map)>>, StoreError> {
        let statuses = Status::BEGUN.iter().map(|status| status.as_str().into()).collect();
        let query = Query::all(&EXECUTIONS, EXECUTIONS_LOADED).with(Condition::OneOf("status", statuses));
        let mut found: BTreeMap<String, Vec<(String, Map)>> = BTreeMap::new();
        for execution in self.store.find(query).await?.documents.into_iter().map(Execution::stored) {
            let action = execution.text("action");
            if actions.contains_key(action) {
                let of_action = found.entry(action.to_owned()).or_default();
                of_action.push((execution.text("id").to_owned(), parameters(&execution)));
            }
        }
        Ok(found)
    }
}

fn parameters(execution: &Execution) -> Map {
    execution.map("parameters").cloned().unwrap_or_default()
}

/// The outcome of an execution that a policy cancels.
fn canceled(refusal: &Refusal) -> Outcome {
    let Refusal { policy, threshold } = refusal;
    let message = format!(
        "canceled by policy `{policy}`: as many executions of the action run as its `threshold`, {threshold}, allows"
    );
    let result: Map = [("message", message)].into_iter().collect();
    Outcome { status: Status::Canceled, result: Value::Map(result) }
}
