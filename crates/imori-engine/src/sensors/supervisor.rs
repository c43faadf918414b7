//! Starts and stops sensors as they are enabled, disabled and registered. Without a sensor that is meant to run, there
//! is no process and no deadline to wake up for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tracing::{info, warn};

use super::backoff::Backoff;
use super::run::{End, run};
use crate::engine::Engine;
use crate::limits::SENSORS_AT_ONCE;
use crate::registry::{RegisteredSensor, Registry, SensorStatus};

/// A sensor that is meant to run.
struct Task {
    sensor: Arc<RegisteredSensor>,
    stop: watch::Sender<bool>,
    handle: JoinHandle<()>,
}

/// Runs the enabled sensors until the engine stops.
pub(crate) async fn run_sensors(engine: Arc<Engine>) {
    // Sensors that are stopped with the broker have time for their `cleanup`.
    let _finishing = engine.broker.finishing();
    let mut tasks: BTreeMap<String, Task> = BTreeMap::new();
    let mut changes = engine.trigger_changes();
    loop {
        let registry = engine.registry();
        let is_same = |task: &Task, new: Option<&Arc<RegisteredSensor>>| {
            new.is_some_and(|new| is_wanted(&registry, new) && **new == *task.sensor)
        };
        let ended = tasks.extract_if(.., |reference, task| !is_same(task, registry.sensors.get(reference)));
        let mut before: BTreeMap<String, JoinHandle<()>> = BTreeMap::new();
        for (reference, task) in ended {
            task.stop.send_replace(true);
            before.insert(reference, task.handle);
        }
        for (reference, sensor) in &registry.sensors {
            if !is_wanted(&registry, sensor) || tasks.contains_key(reference) {
                continue;
            }
            if tasks.len() == SENSORS_AT_ONCE {
                refuse(&engine, reference);
                continue;
            }
            let (stop, stopping) = watch::channel(false);
            let former = before.remove(reference);
            let kept = keep_running(Arc::clone(&engine), Arc::clone(sensor), stopping);
            let handle = engine.runtime.spawn(async move {
                if let Some(former) = former {
                    // An aborted task has stopped too.
                    let _ = former.await;
                }
                kept.await;
            });
            tasks.insert(reference.clone(), Task { sensor: Arc::clone(sensor), stop, handle });
        }
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { break },
            () = engine.stopped() => break,
        }
    }
    for task in tasks.values() {
        task.stop.send_replace(true);
    }
    for task in tasks.into_values() {
        let _ = task.handle.await;
    }
}

/// Shows that a sensor does not run because of too many others.
fn refuse(engine: &Engine, reference: &str) {
    let reason = format!("{SENSORS_AT_ONCE} sensors run already; disable some of them");
    warn!(sensor = reference, reason, "a sensor is not started");
    engine.sensors.change(reference, |state| state.last_end = Some(reason));
}

/// Whether a sensor is meant to run.
fn is_wanted(registry: &Registry, sensor: &RegisteredSensor) -> bool {
    let waits =
        || registry.triggers.values().any(|trigger| sensor.definition.trigger_types.contains(&trigger.kind));
    sensor.is_enabled && (!sensor.is_on_demand || waits())
}

/// Runs a sensor again and again, with a growing pause, until it is stopped.
async fn keep_running(
    engine: Arc<Engine>,
    sensor: Arc<RegisteredSensor>,
    mut stopping: watch::Receiver<bool>,
) {
    let reference = sensor.reference();
    let mut backoff = Backoff::default();
    engine.sensors.remove(&reference);
    loop {
        engine.sensors.change(&reference, |state| state.enter(SensorStatus::Starting, engine.now()));
        let start = Instant::now();
        let reason = match run(&engine, &sensor, &mut stopping).await {
            End::Stopped => break,
            End::Unexpected(reason) => reason,
        };
        let pause = backoff.ended(start.elapsed());
        let next = engine.now().plus_micros(i64::try_from(pause.as_micros()).unwrap_or(i64::MAX));
        let status = match backoff.is_crash_loop() {
            true => SensorStatus::CrashLooping,
            false => SensorStatus::Waiting,
        };
        warn!(
            sensor = reference,
            reason,
            pause_s = pause.as_secs(),
            "a sensor has ended; it is started again"
        );
        engine.sensors.change(&reference, |state| {
            state.enter(status, engine.now());
            state.pid = None;
            state.restarts = state.restarts.saturating_add(1);
            state.last_end = Some(reason);
            state.next_start = next;
        });
        tokio::select! {
            () = sleep(pause) => {}
            // It fails if the supervisor is gone, which stops the sensor too.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => break,
        }
    }
    info!(sensor = reference, "a sensor has stopped");
    engine.sensors.remove(&reference);
}
