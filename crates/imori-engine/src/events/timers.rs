//! Timers: one task sleeps until the first one is due.

use std::sync::Arc;
use std::time::Duration;

use imori_automation::ids::Id;
use imori_automation::timers::{Missed, Schedule, Timer};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tokio::time::sleep;
use tracing::error;

use super::dispatch::TriggerEvent;
use crate::engine::Engine;
use crate::limits::{SLEEP_MAX, STORE_PAUSE};
use crate::registry::{TIMER_TYPES, Trigger};
use crate::store::{TIMERS, Transaction};

/// Fires the timers of the rules until the engine stops.
pub(crate) async fn run_timers(engine: Arc<Engine>) {
    let mut schedule = Schedule::new();
    let mut scheduled: Vec<Arc<Trigger>> = Vec::new();
    let mut changes = engine.trigger_changes();
    loop {
        let wanted: Vec<Arc<Trigger>> = engine
            .registry()
            .triggers
            .values()
            .filter(|trigger| TIMER_TYPES.contains(&trigger.kind.as_str()))
            .cloned()
            .collect();
        for trigger in scheduled.iter().filter(|old| !wanted.iter().any(|new| new.id == old.id)) {
            schedule.remove(id_of(trigger));
        }
        for trigger in wanted.iter().filter(|new| !scheduled.iter().any(|old| new.id == old.id)) {
            // A wrong one was refused when its rule was registered.
            let Ok(timer) = Timer::read(&trigger.kind, &trigger.parameters) else { continue };
            let last_fired = last_fired(&engine, trigger).await;
            schedule.insert(id_of(trigger), timer, Some(last_fired), missed(trigger), engine.now());
        }
        scheduled = wanted;
        let next = schedule.next();
        let pause = next.map(|next| {
            let micros = next.micros().saturating_sub(engine.now().micros());
            Duration::from_micros(u64::try_from(micros).unwrap_or_default()).min(SLEEP_MAX)
        });
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = engine.stopped() => return,
            () = async { match pause {
                Some(pause) => sleep(pause).await,
                None => std::future::pending().await,
            } } => {}
        }
        for (id, at) in schedule.due(engine.now()) {
            let Some(trigger) = scheduled.iter().find(|trigger| id_of(trigger) == id) else { continue };
            let Some(payload) = schedule.timer(id).map(|timer| timer.payload(at)) else { continue };
            fire(&engine, trigger, at, payload).await;
        }
    }
}

/// Sends the event of a firing, until the store takes it.
async fn fire(engine: &Arc<Engine>, trigger: &Arc<Trigger>, at: Timestamp, payload: Value) {
    let seconds = u32::try_from(at.seconds()).unwrap_or(u32::MAX);
    let id = Id::derived(seconds, &[b"timer", trigger.id.as_bytes(), &at.micros().to_be_bytes()]);
    let event = TriggerEvent { id, trigger: Arc::clone(trigger), payload, occurred: at };
    while let Err(error) = engine.accept(event.clone()).await {
        error!(trigger = trigger.reference, %error, "a timer waits for the store");
        tokio::select! {
            () = sleep(STORE_PAUSE) => {}
            () = engine.stopped() => return,
        }
    }
    note(engine, trigger, at).await;
}

/// When the timer fired last; the time of its first registration if it never did.
async fn last_fired(engine: &Arc<Engine>, trigger: &Trigger) -> Timestamp {
    let stored = engine.store.get(&TIMERS, &trigger.id).await.ok().flatten();
    let fired = stored.and_then(|document| document.get("fired_at")?.as_str()?.parse().ok());
    match fired {
        Some(fired) => fired,
        None => {
            let now = engine.now();
            note(engine, trigger, now).await;
            now
        }
    }
}

async fn note(engine: &Arc<Engine>, trigger: &Trigger, at: Timestamp) {
    let document: Map = [("id", trigger.id.clone()), ("fired_at", at.to_string())].into_iter().collect();
    let mut transaction = Transaction::new();
    transaction.put(&TIMERS, document);
    if let Err(error) = engine.store.commit(transaction).await {
        error!(%error, "the time of a timer's last firing is not stored");
    }
}

fn id_of(trigger: &Trigger) -> Id {
    trigger.id.parse().unwrap_or_else(|_| Id::derived(0, &[trigger.id.as_bytes()]))
}

/// What becomes of the firings that the engine was not there for.
fn missed(trigger: &Trigger) -> Missed {
    match trigger.parameters.get("x-imori-missed").and_then(Value::as_str) {
        Some("once") => Missed::Once,
        Some("all") => Missed::All,
        _ => Missed::Skip,
    }
}
