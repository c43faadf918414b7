//! One run of a sensor: its process from the start to the end, and the conversation with it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;

use imori_automation::value::{Map, Value};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{info, warn};

use super::dispatch::dispatch;
use super::output::follow;
use crate::datastore::Keys;
use crate::engine::{Engine, OwnEvent};
use crate::limits::{KILL_GRACE, OUTPUT_GRACE};
use crate::python::{
    Datastore as _, SensorAnswer, SensorCommand, SensorCommands, SensorEnds, SensorProcess, SensorProgram,
    SensorQuestion, SensorQuestions,
};
use crate::registry::{RegisteredSensor, SensorStatus, Trigger};

/// The level of the loggers of sensors, as in StackStorm.
const LOG_LEVEL: &str = "info";

/// How a run ended.
pub(super) enum End {
    /// The sensor was stopped.
    Stopped,
    /// It ended without being told to, or did not start.
    Unexpected(String),
}

/// Runs a sensor until it ends or is stopped.
pub(super) async fn run(
    engine: &Arc<Engine>,
    sensor: &RegisteredSensor,
    stopping: &mut watch::Receiver<bool>,
) -> End {
    let started = tokio::select! {
        started = start(engine, sensor) => started,
        _ = stopping.wait_for(|is_stopping| *is_stopping) => return End::Stopped,
    };
    let (program, mut process, ends) = match started {
        Ok(started) => started,
        Err(reason) => return End::Unexpected(reason),
    };
    let reference = sensor.reference();
    let pid = process.pid();
    info!(sensor = reference, pid, "a sensor has started");
    engine.sensors.change(&reference, |state| {
        state.pid = Some(pid);
        state.token = program.token.clone();
    });
    report(engine, sensor, "process_spawn", ("pid", i64::from(pid).into()), &program).await;
    let told_to_stop = stopping.clone();
    let work = async {
        let SensorEnds { questions, commands, stdout, stderr } = ends;
        let heard = async {
            tokio::join!(
                converse(engine, sensor, questions),
                follow(engine, &reference, stdout),
                follow(engine, &reference, stderr),
            );
        };
        tokio::pin!(heard);
        // It is told of triggers for as long as it is heard.
        tokio::select! {
            () = &mut heard => return,
            () = tell(engine, sensor, commands, &program, told_to_stop) => {}
        }
        heard.await;
    };
    tokio::pin!(work);
    let mut is_done = false;
    let by_itself = loop {
        tokio::select! {
            ended = process.ended() => break Some(ended),
            () = &mut work, if !is_done => is_done = true,
            _ = stopping.wait_for(|is_stopping| *is_stopping) => break None,
        }
    };
    let is_stopped = by_itself.is_none();
    let ended = match by_itself {
        Some(ended) => ended,
        None => {
            let grace = engine.python_hosts().map_or(KILL_GRACE, |hosts| hosts.kill_grace());
            let end = process.end(grace);
            tokio::pin!(end);
            // `cleanup` may need the conversation.
            loop {
                tokio::select! {
                    ended = &mut end => break ended,
                    () = &mut work, if !is_done => is_done = true,
                }
            }
        }
    };
    if !is_done {
        // What was written before the end is still read.
        let _ = timeout(OUTPUT_GRACE, work).await;
    }
    let (reason, exit_code) = match ended {
        Ok(status) => (told(status), exit_code(status)),
        Err(error) => (error.to_string(), -1),
    };
    engine.sensors.change(&reference, |state| state.token = None);
    report(engine, sensor, "process_exit", ("exit_code", i64::from(exit_code).into()), &program).await;
    match is_stopped {
        true => End::Stopped,
        false => End::Unexpected(reason),
    }
}

/// Starts the process in the environment of its pack, which is built first if it has none.
async fn start(
    engine: &Arc<Engine>,
    sensor: &RegisteredSensor,
) -> Result<(SensorProgram, SensorProcess, SensorEnds), String> {
    let definition = &sensor.definition;
    let environments = engine.environments();
    let environment =
        environments.build(&definition.pack, &sensor.pack_folder, &sensor.python_versions).await;
    let python = environment.map_err(|error| error.to_string())?.python;
    let pack = definition.pack.clone();
    // Values of the datastore are read by a thread that waits.
    let config = {
        let engine = Arc::clone(engine);
        tokio::task::spawn_blocking(move || engine.pack_config(&pack))
    };
    let config = config.await.map_err(|error| error.to_string())?;
    let token = engine.sensor_token();
    let variables = token.as_deref().map(|token| engine.sensor_variables(token)).unwrap_or_default();
    let program = SensorProgram {
        pack: definition.pack.clone(),
        python,
        pack_folder: sensor.pack_folder.clone(),
        entry_point: entry_point(sensor)?,
        class_name: definition.class_name.clone(),
        config,
        poll_interval: definition.poll_interval,
        log_level: String::from(LOG_LEVEL),
        triggers: triggers(engine, sensor).into_values().collect(),
        environment: variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        token,
    };
    let hosts = engine.python_hosts();
    let started = hosts.and_then(|hosts| hosts.start_sensor(&program));
    let (process, ends) =
        started.map_err(|error| format!("Python `{}` does not start: {error}", program.python.display()))?;
    Ok((program, process, ends))
}

/// The file with the class; it must be in the pack.
fn entry_point(sensor: &RegisteredSensor) -> Result<PathBuf, String> {
    let file = &sensor.definition.entry_file;
    let failed = |error: std::io::Error| format!("`{file}`: {error}");
    let folder = sensor.pack_folder.canonicalize().map_err(failed)?;
    let path = folder.join(file).canonicalize().map_err(failed)?;
    match path.starts_with(&folder) {
        true => Ok(path),
        false => Err(format!("`{file}` is outside of its pack")),
    }
}

/// The triggers that a sensor is told of, by id: those of rules, and each type without parameters.
fn triggers(engine: &Engine, sensor: &RegisteredSensor) -> BTreeMap<String, Map> {
    let registry = engine.registry();
    let types = &sensor.definition.trigger_types;
    let has_parameters = |kind: &str| {
        let schema =
            registry.trigger_types.get(kind).and_then(|kind| kind.get("parameters_schema")?.as_map());
        schema.is_some_and(|schema| !schema.is_empty())
    };
    let plain = types.iter().filter(|kind| !has_parameters(kind)).map(|kind| Trigger::new(kind, Map::new()));
    let of_rules = registry.triggers.values().filter(|trigger| types.contains(&trigger.kind));
    let all = plain.chain(of_rules.map(|trigger| Trigger::clone(trigger)));
    all.map(|trigger| (trigger.id.clone(), trigger.full_document())).collect()
}

/// Tells the process what to run, of triggers as rules come and go, and that it has to stop.
async fn tell(
    engine: &Engine,
    sensor: &RegisteredSensor,
    mut commands: SensorCommands,
    program: &SensorProgram,
    mut stopping: watch::Receiver<bool>,
) {
    let mut changes = engine.trigger_changes();
    let id = |trigger: &Map| trigger.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut known: BTreeMap<String, Map> =
        program.triggers.iter().map(|trigger| (id(trigger), trigger.clone())).collect();
    let mut sent = commands.request(program).await;
    while sent.is_ok() {
        let wanted = triggers(engine, sensor);
        for (id, trigger) in &wanted {
            if !known.contains_key(id) {
                sent = sent.and(commands.tell(&SensorCommand::Add(trigger.clone())).await);
            }
        }
        for id in known.keys().filter(|id| !wanted.contains_key(*id)) {
            sent = sent.and(commands.tell(&SensorCommand::Remove(id.clone())).await);
        }
        known = wanted;
        let is_stopping = tokio::select! {
            changed = changes.changed() => changed.is_err(),
            // Its sender stops the sensor before it is gone.
            _ = stopping.wait_for(|is_stopping| *is_stopping) => true,
        };
        if is_stopping {
            // A sensor that has closed the socket ends by itself, or is killed.
            let _ = commands.tell(&SensorCommand::Stop {}).await;
            return;
        }
    }
}

/// Answers the questions of a sensor until it closes the socket.
async fn converse(engine: &Arc<Engine>, sensor: &RegisteredSensor, mut questions: SensorQuestions) {
    let reference = sensor.reference();
    let datastore = Keys::new(engine, engine.user());
    loop {
        let answer = match questions.next().await {
            Ok(Ok(SensorQuestion::Ready)) => {
                engine.sensors.change(&reference, |state| state.enter(SensorStatus::Running, engine.now()));
                SensorAnswer::Answer(crate::python::DatastoreAnswer::Done)
            }
            Ok(Ok(SensorQuestion::Datastore(question))) => match datastore.answer(question).await {
                Ok(answer) => SensorAnswer::Answer(answer),
                Err(reason) => SensorAnswer::Error(reason),
            },
            Ok(Ok(SensorQuestion::Dispatch(event))) => dispatch(engine, &reference, event).await,
            Ok(Err(reason)) => SensorAnswer::Error(reason),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return,
            Err(error) => {
                return warn!(sensor = reference, %error, "a sensor is no longer heard");
            }
        };
        if questions.answer(&answer).await.is_err() {
            return;
        }
    }
}

/// Reports a start or an end, which rules may wait for.
async fn report(
    engine: &Engine,
    sensor: &RegisteredSensor,
    change: &'static str,
    (key, value): (&str, Value),
    program: &SensorProgram,
) {
    let mut payload = Map::new();
    payload.insert("id", sensor.definition.class_name.as_str());
    payload.insert("timestamp", engine.now().seconds());
    payload.insert(key, value);
    if change == "process_spawn" {
        payload.insert("cmd", format!("{} {}", program.python.display(), program.entry_point.display()));
    }
    engine.report(OwnEvent::SensorChanged(change, payload)).await;
}

fn told(status: ExitStatus) -> String {
    match status.success() {
        true => String::from("`run` has returned"),
        false => format!("the process ended with {status}"),
    }
}

/// The exit code as Python has it: negative for a signal.
fn exit_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(-1)
}
