//! Events of the engine itself: ends of actions, changes of the datastore, and what actions inject.

use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tokio::sync::mpsc::Receiver;
use tracing::{error, warn};

use super::dispatch::TriggerEvent;
use crate::engine::{Engine, Injection, OwnEvent};
use crate::limits::EXECUTIONS_LOADED;
use crate::notifications::NOTIFY_TYPE;
use crate::parameters::masked_parameters;
use crate::registry::ACTION_TYPE;
use crate::store::{ENDS, EXECUTIONS, Query, StoreError, Transaction};

/// The trigger type of inquiries.
const INQUIRY_TYPE: &str = "core.st2.generic.inquiry";

/// Makes events of what the engine reports.
pub(crate) async fn run_own_events(engine: Arc<Engine>, mut reported: Receiver<OwnEvent>) {
    while let Some(event) = reported.recv().await {
        match event {
            OwnEvent::ActionEnded(execution) => action_ended(&engine, &execution).await,
            OwnEvent::Notified(notification) => {
                let engine = Arc::clone(&engine);
                engine.runtime.clone().spawn(async move { notified(&engine, notification).await });
            }
            OwnEvent::KeyChanged(change, payload) => {
                let kind = format!("core.st2.key_value_pair.{change}");
                let id = engine.new_id();
                accept(&engine, &kind, id, payload).await;
            }
            OwnEvent::SensorChanged(change, payload) => {
                let kind = format!("core.st2.sensor.{change}");
                let id = engine.new_id();
                accept(&engine, &kind, id, payload).await;
            }
            OwnEvent::Asked(payload) => {
                let inquiry = payload.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
                let id = Id::derived(0, &[b"inquiry", inquiry.as_bytes()]);
                accept(&engine, INQUIRY_TYPE, id, payload).await;
            }
            OwnEvent::Injection(Injection { trigger, payload, key, answer }) => {
                let injected = engine.inject(&trigger, payload, Some(&key)).await;
                // The action may have been canceled.
                let _ = answer.send(injected.map(|id| id.to_string()).map_err(|error| error.to_string()));
            }
        }
    }
}

async fn action_ended(engine: &Arc<Engine>, id: &str) {
    if !engine.registry().triggers.contains_key(ACTION_TYPE) {
        return;
    }
    let execution = match engine.store.get(&EXECUTIONS, id).await {
        Ok(Some(execution)) => execution,
        // The history of the execution is deleted.
        Ok(None) => return forget_end(engine, id).await,
        Err(error) => return error!(execution = id, %error, "the event of an action's end waits for a start"),
    };
    let of = |key: &str| execution.get(key).cloned().unwrap_or_default();
    let action = of("action");
    let name =
        action.as_str().and_then(|action| action.split_once('.')).map_or("", |(_, name)| name).to_owned();
    let mut payload = Map::new();
    payload.insert("execution_id", of("id"));
    payload.insert("status", of("status"));
    payload.insert("start_timestamp", of("start_timestamp"));
    payload.insert("action_name", name);
    payload.insert("action_ref", action);
    payload.insert("runner_ref", of("runner"));
    payload.insert("parameters", masked_parameters(&engine.registry(), &execution));
    payload.insert("result", of("result"));
    let end = of("end_timestamp").as_str().and_then(|end| end.parse::<Timestamp>().ok());
    let seconds = end.map_or(0, |end| u32::try_from(end.seconds()).unwrap_or(u32::MAX));
    let execution = of("id").as_str().unwrap_or_default().to_owned();
    let id = Id::derived(seconds, &[b"actiontrigger", execution.as_bytes()]);
    if accept(engine, ACTION_TYPE, id, payload).await {
        forget_end(engine, &execution).await;
    }
}

/// Deletes the note of an end whose event is stored.
async fn forget_end(engine: &Arc<Engine>, execution: &str) {
    let mut transaction = Transaction::new();
    transaction.delete(&ENDS, execution);
    if let Err(error) = engine.store.commit(transaction).await {
        // The next start accepts the event again, which makes nothing twice.
        warn!(%error, "an event of the automation itself stays noted");
    }
}

/// Sends the events of a notification, and forgets it once they are stored.
async fn notified(engine: &Arc<Engine>, mut notification: Map) {
    let id = notification.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(Value::Map(notify)) = notification.remove("notify") else { return };
    match engine.store.get(&EXECUTIONS, &id).await {
        Ok(Some(execution)) => {
            for (event, payload) in engine.notifications(&execution, notify).await {
                if !accept(engine, NOTIFY_TYPE, event, payload).await {
                    // The next start sends what is missing.
                    return;
                }
            }
        }
        // The history of the execution is deleted.
        Ok(None) => {}
        Err(error) => return error!(execution = id, %error, "a notification waits for a start"),
    }
    engine.forget_notification(&id).await;
}

/// Reports the ends of executions whose events the last engine did not store.
///
/// # Errors
/// The store cannot be read.
pub(crate) async fn report_ends(engine: &Arc<Engine>) -> Result<(), StoreError> {
    for noted in engine.store.find(Query::all(&ENDS, EXECUTIONS_LOADED)).await?.documents {
        let id = noted.get("id").and_then(Value::as_str).unwrap_or_default();
        engine.report(OwnEvent::ActionEnded(id.to_owned())).await;
    }
    Ok(())
}

/// Accepts an event, if a rule waits for its trigger. Returns false if the store refuses.
async fn accept(engine: &Arc<Engine>, trigger: &str, id: Id, payload: Map) -> bool {
    let Some(trigger) = engine.registry().triggers.get(trigger).cloned() else { return true };
    let event = TriggerEvent { id, trigger, payload: Value::Map(payload), occurred: engine.now() };
    let accepted = engine.accept(event).await;
    if let Err(error) = &accepted {
        error!(%error, "an event of the automation itself is not stored");
    }
    accepted.is_ok()
}
