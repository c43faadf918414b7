//! The executions that a workflow asks for.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::parameters::cast;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::{Call, WorkflowEvent};

use super::batch::{Batch, News};
use crate::engine::Engine;
use crate::executions::{Active, Execution, Origin, Status};
use crate::limits::INSTANT_CALLS_MAX;
use crate::store::EXECUTIONS;

/// The id of the execution of a workflow's call.
pub(super) fn child_id(workflow: &str, call: &str) -> String {
    match workflow.parse::<Id>() {
        Ok(workflow) => Id::call(workflow, call).to_string(),
        Err(_) => Id::derived(0, &[b"call", workflow.as_bytes(), call.as_bytes()]).to_string(),
    }
}

impl Engine {
    /// Adds the execution of a call to a batch. Returns its end, if it ends at once.
    pub(super) fn add_child(
        self: &Arc<Self>,
        active: &Active,
        call: &Call,
        batch: &mut Batch,
        now: Timestamp,
    ) -> Option<WorkflowEvent> {
        let (mut child, checked) = self.child(active, call, now);
        let end = match checked {
            Err(reason) => {
                let result: Map = [("error", reason)].into_iter().collect();
                Some((Status::Failed, Value::Map(result)))
            }
            // An action that does nothing needs no queue, and no transaction of its own.
            Ok(())
                if child.text("runner") == "noop"
                    && call.delay.is_zero()
                    && !self.concurrency().is_limited(&call.action)
                    && batch.instant_calls < INSTANT_CALLS_MAX =>
            {
                batch.instant_calls += 1;
                Some((Status::Succeeded, Value::Map(Map::new())))
            }
            Ok(()) => None,
        };
        if let Some((status, result)) = end {
            child.end(status, result, now);
            let event = News::of(child.document()).map(|news| news.event);
            batch.transaction.keep(&EXECUTIONS, child.document().clone());
            batch.changed.push(child);
            return event;
        }
        if !call.delay.is_zero() {
            child.delay(call.delay, now);
        }
        batch.transaction.keep(&EXECUTIONS, child.document().clone());
        batch.created.push(child);
        None
    }

    /// The execution of a call, and whether it can run. The parameters are values by now, and are not rendered again.
    fn child(&self, active: &Active, call: &Call, now: Timestamp) -> (Execution, Result<(), String>) {
        let workflow = active.execution.text("id");
        let id = child_id(workflow, &call.id);
        let mut parent = active.execution.map("context").cloned().unwrap_or_default();
        parent.insert("execution_id", workflow);
        let mut task = active.conductor.task_context(&call.task);
        let key = match active.execution.text("runner") {
            "action-chain" => "chain",
            _ => {
                task.insert("workflow_execution_id", workflow);
                task.insert("task_execution_id", id.as_str());
                task.insert("task_name", call.task.as_str());
                task.insert("task_id", call.task.as_str());
                task.insert("task_route", i64::from(call.route));
                if let Some(item) = call.item {
                    task.insert("item_id", i64::from(item));
                }
                "orquesta"
            }
        };
        let own = task.get("notify").and_then(Value::as_map);
        let notify = self.notify_of_task(&active.execution, &call.task, &call.action, own);
        let mut context = Map::new();
        let user = parent.get("user").and_then(Value::as_str).unwrap_or(self.user()).to_owned();
        context.insert("parent", parent);
        context.insert(key, task);
        let origin = Origin { user, context, parent: Some(workflow.to_owned()), ..Origin::default() };
        let registry = self.registry();
        let unknown = || -> Arc<Map> { Arc::new([("ref", call.action.as_str())].into_iter().collect()) };
        let known = registry.actions.get(&call.action).cloned();
        let (parameters, checked) = match &known {
            None => {
                let reason = format!("Action with reference \"{}\" doesn't exist.", call.action);
                (call.parameters.clone(), Err(reason))
            }
            Some(action) if action.get("enabled") == Some(&Value::Bool(false)) => {
                (call.parameters.clone(), Err(format!("Action \"{}\" is disabled.", call.action)))
            }
            Some(action) => match self.cast_parameters(action, &call.parameters) {
                Ok(parameters) => {
                    let checked = self.check_parameters(action, &parameters);
                    (parameters, checked)
                }
                Err(reason) => (call.parameters.clone(), Err(reason)),
            },
        };
        let action = known.unwrap_or_else(unknown);
        let mut child = Execution::new(&id, &action, parameters, origin, now);
        child.set("call", call.id.as_str());
        if let Some(notify) = notify {
            child.set("notify", notify);
        }
        (child, checked)
    }

    fn cast_parameters(&self, action: &Map, parameters: &Map) -> Result<Map, String> {
        let registry = self.registry();
        let runner = action.get("runner_type").and_then(Value::as_str).unwrap_or_default();
        let runner = registry.runners.get(runner).and_then(|runner| runner.get("runner_parameters"));
        let schemas = [action.get("parameters"), runner];
        let cast_one = |(name, value): (&str, &Value)| {
            let schema = schemas.iter().flatten().find_map(|schemas| schemas.get(name));
            let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
            match cast(value, kind) {
                Ok(value) => Ok((name.to_owned(), value)),
                Err(error) => Err(format!("parameter `{name}`: {error}")),
            }
        };
        parameters.iter().map(cast_one).collect()
    }
}
