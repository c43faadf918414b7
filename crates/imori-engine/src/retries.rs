//! Retry policies: the next try of an execution that has failed or timed out.

use imori_automation::ids::Id;
use imori_automation::retries::Outcome;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::executions::{Execution, Status};

impl Engine {
    /// The execution that follows an ended one by the retry policy of its action; `None` without such a policy, for
    /// another end, after the last try, and for an execution of a workflow, which has retries of its own.
    pub(crate) fn retry_of(&self, ended: &Execution) -> Option<Execution> {
        let status = ended.text("status");
        let outcome = if status == Status::Failed.as_str() {
            Outcome::Failure
        } else if status == Status::TimedOut.as_str() {
            Outcome::Timeout
        } else {
            return None;
        };
        let registry = self.registry();
        let (policy, retry) = registry.action_policies.retry(ended.text("action"))?;
        let action = registry.actions.get(ended.text("action"))?;
        if action.get("enabled") == Some(&Value::Bool(false)) || is_of_workflow(ended) {
            return None;
        }
        let count = retries(ended);
        let delay = retry.decide(count, outcome)?;
        let now = self.now();
        let id = ended.text("id");
        let seconds = u32::try_from(now.seconds()).unwrap_or(u32::MAX);
        let next = Id::derived(seconds, &[b"retry", id.as_bytes()]).to_string();
        let delay = i64::try_from(delay.as_micros()).unwrap_or(i64::MAX);
        let due = (delay > 0).then(|| now.plus_micros(delay).unwrap_or(Timestamp::MAX));
        let mut told = Map::new();
        told.insert("applied_policy", policy.as_str());
        told.insert("retry_count", i64::from(count) + 1);
        told.insert("retried_liveaction_id", id);
        let mut next = ended.again(&next, told, due, now);
        // Its pack may have another definition by now.
        next.set("runner", action.get("runner_type").cloned().unwrap_or_default());
        Some(next)
    }
}

fn is_of_workflow(execution: &Execution) -> bool {
    let context = execution.map("context");
    context.and_then(|context| context.get("parent")).is_some_and(Value::is_truthy)
}

/// The number of tries before this execution, without the first one.
fn retries(execution: &Execution) -> u32 {
    let count = execution
        .map("context")
        .and_then(|context| context.get("policies")?.get("retry")?.get("retry_count")?.as_int());
    count.and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}
