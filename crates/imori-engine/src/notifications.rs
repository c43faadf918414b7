//! Notifications: an action's `notify` says which routes are told of the end of its executions. The end of an execution
//! stores its notification in the same transaction, which is deleted once its events are stored, so that a crash loses
//! none of them. The ids of the events derive from the execution, so that none comes twice.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::templates::render_value;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tracing::{error, warn};

use crate::engine::{Engine, OwnEvent};
use crate::executions::Execution;
use crate::limits::OBJECTS_LOADED;
use crate::parameters::masked_parameters;
use crate::store::{NOTIFICATIONS, Query, StoreError, Transaction};

/// The trigger type of notifications.
pub(crate) const NOTIFY_TYPE: &str = "core.st2.generic.notifytrigger";

/// The route of a notification that names none, as in StackStorm.
const DEFAULT_ROUTE: &str = "notify.default";

impl Engine {
    /// The notification of an execution that has ended, as it is stored; `None` if it has none, or no rule waits for it.
    pub(crate) fn notification_of(&self, ended: &Execution) -> Option<Map> {
        self.registry().triggers.get(NOTIFY_TYPE)?;
        let notify = self.notify_of(ended)?;
        let moments = moments(ended.text("status"));
        if !moments.iter().any(|(moment, _)| notify.get(moment).is_some_and(Value::is_truthy)) {
            return None;
        }
        Some([("id", Value::from(ended.text("id"))), ("notify", notify.into())].into_iter().collect())
    }

    /// What is to be told of the end of an execution: its action's `notify`, or what its request says. An execution of a
    /// workflow has what the workflow chose for its task.
    pub(crate) fn notify_of(&self, execution: &Execution) -> Option<Map> {
        if !execution.text("parent").is_empty() {
            return execution.map("notify").cloned();
        }
        let given = execution.map("context").and_then(|context| context.get("notify")?.as_map());
        self.notify_of_action(execution.text("action"))
            .or_else(|| given.cloned())
            .filter(|map| !map.is_empty())
    }

    /// An action's `notify`; `None` if it is empty.
    pub(crate) fn notify_of_action(&self, action: &str) -> Option<Map> {
        let registry = self.registry();
        let notify = registry.actions.get(action)?.get("notify")?.as_map()?;
        notify.iter().any(|(_, part)| part.is_truthy()).then(|| notify.clone())
    }

    /// What is to be told of the end of a workflow's task that runs this action: of a task of Orquesta if the workflow's
    /// parameter `notify` lists it, of one of an action chain unless `skip_notify` does. `own` is what the task says.
    pub(crate) fn notify_of_task(
        &self,
        workflow: &Execution,
        task: &str,
        action: &str,
        own: Option<&Map>,
    ) -> Option<Map> {
        let inherited = || self.notify_of(workflow);
        match workflow.text("runner") {
            "action-chain" if self.lists(workflow, "skip_notify", task) => None,
            "action-chain" => {
                let own = || own.filter(|own| !own.is_empty()).cloned();
                self.notify_of_action(action).or_else(own).or_else(inherited)
            }
            _ if !self.lists(workflow, "notify", task) => None,
            _ => inherited().map(|inherited| self.notify_of_action(action).unwrap_or(inherited)),
        }
    }

    /// Whether a parameter of a workflow, or its action's default, lists a task.
    fn lists(&self, workflow: &Execution, parameter: &str, task: &str) -> bool {
        let registry = self.registry();
        let given = workflow.map("parameters").and_then(|parameters| parameters.get(parameter)?.as_list());
        let default = || {
            let action = registry.actions.get(workflow.text("action"))?;
            action.get("parameters")?.get(parameter)?.get("default")?.as_list()
        };
        let list = given.filter(|list| !list.is_empty()).or_else(default).unwrap_or_default();
        list.iter().any(|item| item.as_str() == Some(task))
    }

    /// The events of an execution's notification: the payload of each with its id, one for each route.
    pub(crate) async fn notifications(self: &Arc<Self>, execution: &Map, notify: Map) -> Vec<(Id, Map)> {
        let (engine, execution) = (Arc::clone(self), execution.clone());
        let id = execution.get("id").cloned().unwrap_or_default();
        // Templates may read the datastore, which waits for the store.
        let made = tokio::task::spawn_blocking(move || engine.payloads(&execution, &notify)).await;
        made.unwrap_or_else(|error| {
            error!(execution = %id, %error, "the notifications of an execution are lost");
            Vec::new()
        })
    }

    fn payloads(self: &Arc<Self>, execution: &Map, notify: &Map) -> Vec<(Id, Map)> {
        let of = |key: &str| execution.get(key).cloned().unwrap_or_default();
        let text = |key: &str| execution.get(key).and_then(Value::as_str).unwrap_or_default();
        let user = execution.get("context").and_then(|context| context.get("user")?.as_str());
        let names = self
            .template_context(user.unwrap_or(self.system_user()))
            .with("action_parameters", &masked_parameters(&self.registry(), execution).into())
            .with("action_context", &of("context"))
            .with("action_results", &of("result"));
        let rendered = |value: &Value| {
            render_value(value, &names).unwrap_or_else(|error| {
                warn!(execution = text("id"), %error, "a notification is sent as it stands: its template fails");
                value.clone()
            })
        };
        let mut made = Vec::new();
        for (moment, suffix) in moments(text("status")) {
            let Some(part) = notify.get(moment).and_then(Value::as_map).filter(|part| !part.is_empty())
            else {
                continue;
            };
            let message = match part.get("message").filter(|message| message.is_truthy()) {
                Some(message) => message.clone(),
                None => Value::from(format!("Action {} {suffix}", text("action"))),
            };
            let given = part.get("data").and_then(Value::as_map).into_iter().flat_map(Map::iter);
            let mut data: Map = given.map(|(name, value)| (name, rendered(value))).collect();
            // As a text, so that the templates of rules can pass it on as JSON.
            data.insert("result", of("result").to_json());
            let mut payload = Map::new();
            payload.insert("message", rendered(&message));
            payload.insert("data", data);
            payload.insert("execution_id", text("id"));
            payload.insert("status", text("status"));
            payload.insert("start_timestamp", with_offset(text("start_timestamp")));
            payload.insert("end_timestamp", with_offset(text("end_timestamp")));
            payload.insert("action_ref", text("action"));
            payload.insert("runner_ref", text("runner"));
            for (number, route) in (0_u32..).zip(routes(part)) {
                payload.insert("route", route.clone());
                payload.insert("channel", route);
                made.push((event_id(execution, moment, number), payload.clone()));
            }
        }
        made
    }

    /// Forgets a notification whose events are stored.
    pub(crate) async fn forget_notification(&self, execution: &str) {
        let mut transaction = Transaction::new();
        transaction.delete(&NOTIFICATIONS, execution);
        if let Err(error) = self.store.commit(transaction).await {
            error!(execution, %error, "a notification is sent again at the next start, without effect");
        }
    }

    /// Takes up the notifications whose events the last engine did not store.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn resume_notifications(&self) -> Result<(), StoreError> {
        for stored in self.store.find(Query::all(&NOTIFICATIONS, OBJECTS_LOADED)).await?.documents {
            self.report(OwnEvent::Notified(stored)).await;
        }
        Ok(())
    }
}

/// The parts of a `notify` that an execution in this final status has, with the end of a message that they do not give.
pub fn moments(status: &str) -> Vec<(&'static str, &'static str)> {
    let mut moments = vec![("on-complete", "completed.")];
    match status {
        "succeeded" => moments.push(("on-success", "succeeded.")),
        "failed" | "timeout" | "abandoned" => moments.push(("on-failure", "failed.")),
        _ => {}
    }
    moments
}

/// The routes to which a part of a `notify` goes: those that it names, else the default one.
pub fn routes(part: &Map) -> Vec<Value> {
    let given =
        ["routes", "channels"].iter().find_map(|key| part.get(key)?.as_list().filter(|it| !it.is_empty()));
    given.map_or_else(|| vec![Value::from(DEFAULT_ROUTE)], <[Value]>::to_vec)
}

/// The id of the event of a part and a route, the same in each run of the engine, so that it is stored once.
pub fn event_id(execution: &Map, moment: &str, route: u32) -> Id {
    let text = |key: &str| execution.get(key).and_then(Value::as_str).unwrap_or_default();
    let ended = text("end_timestamp").parse::<Timestamp>().ok();
    let seconds = ended.and_then(|ended| u32::try_from(ended.seconds()).ok()).unwrap_or_default();
    let parts: [&[u8]; 4] =
        [b"notifytrigger", text("id").as_bytes(), moment.as_bytes(), &route.to_be_bytes()];
    Id::derived(seconds, &parts)
}

/// A time in UTC as StackStorm's notifications write it, with an offset.
pub fn with_offset(time: &str) -> String {
    time.strip_suffix('Z').map_or_else(|| time.to_owned(), |time| format!("{time}+00:00"))
}
