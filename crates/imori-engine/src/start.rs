//! The start of the engine.

use std::fmt;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use imori_server::broker::Broker;
use tracing::{error, info, warn};

use crate::api::routes;
use crate::engine::{Engine, EngineOptions, Standing, location};
use crate::events::{report_ends, run_own_events, run_readers, run_timers};
use crate::executions::Status;
use crate::ownership::StoreFault;
use crate::postgres::ServerAddress;
use crate::registration::run_reload;
use crate::sensors::run_sensors;
use crate::store::{Finding, StoreError, check};

/// Starts the engine of a broker, and returns the handlers of its API. What the last engine left is taken up in the
/// background.
pub fn start(options: EngineOptions, broker: &Broker) -> Router {
    let (engine, reported) = Engine::new(options, broker);
    let engine = Arc::new(engine);
    if engine.is_open() {
        warn!(
            "`automation.open` is set: every program and user of this machine may run actions as the user of the \
             broker; remove it, and log in by `imori automate login`"
        );
    }
    engine.note_standing(Standing::Starting);
    let started = Arc::clone(&engine);
    engine.runtime.spawn(async move {
        let runtime = started.runtime.clone();
        runtime.spawn(run_own_events(Arc::clone(&started), reported));
        loop {
            let away = match take_up(&started).await {
                Ok(()) => break,
                Err(away) => away,
            };
            let reason = away.to_string();
            error!(reason, "the automation cannot be started");
            let is_adoptable = matches!(away, Refusal::Owner(_));
            started.note_standing(Standing::Away { reason, is_adoptable });
            if !is_adoptable {
                return;
            }
            started.adopted().await;
            started.note_standing(Standing::Starting);
        }
        let told = Arc::clone(&started);
        runtime.spawn(async move { told.tell_of_outages().await });
        runtime.spawn(run_timers(Arc::clone(&started)));
        runtime.spawn(run_readers(Arc::clone(&started)));
        runtime.spawn(run_sensors(Arc::clone(&started)));
        runtime.spawn(run_reload(Arc::clone(&started)));
        let stopping = started.broker.follow_phase();
        started.stop_with(stopping).await;
    });
    routes(engine)
}

/// Looks for what is wrong in the store of an engine with this folder, and this server if it does not keep its documents
/// in the folder, whether it runs or not.
///
/// # Errors
/// The store cannot be read, as a sentence.
pub fn check_store(folder: &Path, server: Option<&ServerAddress>) -> Result<Vec<Finding>, String> {
    check(&location(folder, server), Status::is_final).map_err(|error| error.to_string())
}

/// Why an engine cannot be started.
enum Refusal {
    /// The store is not the one that the definitions know.
    Owner(StoreFault),
    /// The store cannot be used.
    Store(StoreError),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Store(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Owner(fault) => fault.fmt(f),
            Refusal::Store(error) => write!(f, "{error}; restart the broker when that is mended"),
        }
    }
}

/// Registers what the packs and the store have, and takes up the executions that the last engine left.
async fn take_up(engine: &Arc<Engine>) -> Result<(), Refusal> {
    // Others on the machine may read nothing of what is below.
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&engine.options.folder);
    made.map_err(StoreError::from)?;
    for problem in engine.load_roles() {
        error!(problem, "a file of roles is wrong; its users have fewer rights");
    }
    let found = engine.found_store().await?;
    engine.check_owner(&found).map_err(Refusal::Owner)?;
    engine.store.reachable().await?;
    match engine.store.exists() {
        true => {
            if let Err(error) = engine.mark_store(found).await {
                warn!(%error, "the automation's store keeps its last mark");
            }
        }
        false => {
            engine.store.set_known(false);
            let engine = Arc::clone(engine);
            engine.runtime.clone().spawn(async move { engine.mark_new_store().await });
        }
    }
    // Events come in as soon as rules are registered, and change what rules remember.
    if engine.store.exists() {
        engine.remember().await?;
    }
    engine.load().await?;
    if engine.store.exists() {
        engine.resume().await?;
        report_ends(engine).await?;
        engine.resume_notifications().await?;
    }
    engine.note_standing(Standing::Started);
    engine.let_run();
    let registry = engine.registry();
    let (packs, rules) = (registry.packs.len(), registry.rules.len());
    info!(packs, rules, "the automation has started");
    Ok(())
}
