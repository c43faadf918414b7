//! The engine: what its parts share.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use imori_automation::concurrency::ConcurrencyLimits;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_core::memory::Gauge;
use imori_server::broker::Broker;
use imori_server::http::Bodies;
use imori_server::{AutomationState, Phase};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{Notify, Semaphore, broadcast, oneshot, watch};
use tracing::warn;

use crate::access::{Roles, requester};
use crate::cipher::Cipher;
use crate::environments::environment::Environments;
use crate::executions::{Execution, RunQueue, Status, Workflows};
use crate::limits::{
    EXECUTIONS_LOADED, OBJECTS_LOADED, OWN_EVENTS_MAX, RESULTS_AT_ONCE, SPOOL_BYTES_MAX, UPDATES_MAX,
};
use crate::outputs::OutputStream;
use crate::packs::watch::PackWatch;
use crate::postgres::ServerAddress;
use crate::python::{Evaluators, PythonHosts, PythonOptions};
use crate::registry::{Registry, SensorStates};
use crate::rules::RuleMemory;
use crate::store::{
    Condition, Database, EXECUTIONS, Location, Parts, Query, RULE_STATES, Retention, StoreError,
};
use crate::times;

/// Options of the engine.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// The folder of its state, packs and environments; made when it is first needed.
    pub folder: PathBuf,
    /// The server that has its documents; `None` for a file in the folder.
    pub server: Option<ServerAddress>,
    /// Folders of packs besides its own.
    pub packs: Vec<PathBuf>,
    /// A folder of Python wheels; with it, no Python package is fetched from an index.
    pub wheels: Option<PathBuf>,
    /// Addresses of indexes of packs.
    pub indexes: Vec<String>,
    /// How much history it keeps.
    pub retention: Retention,
    /// Environment variables, of which some set keys of packs' configurations.
    pub variables: Vec<(String, String)>,
}

impl EngineOptions {
    /// The options of an engine that keeps everything in this folder.
    pub fn new(folder: &Path) -> EngineOptions {
        EngineOptions {
            folder: folder.to_owned(),
            server: None,
            packs: Vec::new(),
            wheels: None,
            indexes: vec![String::from("https://index.stackstorm.org/v1/index.json")],
            retention: Retention::default(),
            variables: std::env::vars().collect(),
        }
    }

    /// The folder into which packs are installed.
    pub(crate) fn packs_folder(&self) -> PathBuf {
        self.folder.join("packs")
    }

    /// The folders of packs, that into which they are installed first.
    pub(crate) fn pack_folders(&self) -> Vec<PathBuf> {
        [self.packs_folder()].into_iter().chain(self.packs.iter().cloned()).collect()
    }

    /// The folder of operators' configurations of packs.
    pub(crate) fn configs_folder(&self) -> PathBuf {
        self.folder.join("configs")
    }
}

/// The automation engine of a broker.
pub(crate) struct Engine {
    pub(crate) options: EngineOptions,
    pub(crate) runtime: Handle,
    pub(crate) broker: Broker,
    pub(crate) store: Database,
    pub(crate) cipher: Cipher,
    pub(crate) queue: RunQueue,
    environments: Environments,
    pub(crate) sensors: SensorStates,
    pub(crate) workflows: Workflows,
    python: Mutex<Option<Arc<PythonHosts>>>,
    pub(crate) evaluators: Evaluators,
    registry: ArcSwap<Registry>,
    registering: tokio::sync::Mutex<()>,
    pack_watch: Mutex<PackWatch>,
    roles: ArcSwap<Roles>,
    admissions_changed: AtomicU64,
    /// What the bodies of webhooks have on disk.
    pub(crate) spool: Arc<Bodies>,
    rule_memory: Mutex<RuleMemory>,
    concurrency: Mutex<ConcurrencyLimits<Execution>>,
    counter: AtomicU64,
    updates: broadcast::Sender<Update>,
    triggers: watch::Sender<u64>,
    stopping: watch::Sender<bool>,
    standing: Mutex<Standing>,
    adoption: Notify,
    own_events: Sender<OwnEvent>,
    pub(crate) results: Arc<Semaphore>,
}

/// How far an engine is.
#[derive(Debug, Default)]
pub(crate) enum Standing {
    /// It takes up what the last engine left.
    #[default]
    Starting,
    /// It cannot use its store.
    Away {
        /// Why, and the way out.
        reason: String,
        /// The store can be read, and be adopted.
        is_adoptable: bool,
    },
    /// It works.
    Started,
}

/// What the engine itself does, and rules may wait for.
#[derive(Debug)]
pub(crate) enum OwnEvent {
    /// The execution with this id has ended. Its document is in the store, so that the results of many ends do not wait in
    /// memory.
    ActionEnded(String),
    /// An execution has ended that has a notification; this is what is stored of it.
    Notified(Map),
    /// A key of the datastore changed in this way, such as `create`; this is the payload.
    KeyChanged(&'static str, Map),
    /// A sensor's process changed in this way, such as `process_exit`; this is the payload.
    SensorChanged(&'static str, Map),
    /// An inquiry waits for an answer; this is the payload.
    Asked(Map),
    /// An action asks for an event.
    Injection(Injection),
}

/// An event that an action asks for.
#[derive(Debug)]
pub(crate) struct Injection {
    /// The trigger's reference.
    pub(crate) trigger: String,
    /// The payload.
    pub(crate) payload: Value,
    /// What tells the event apart from others of the trigger.
    pub(crate) key: String,
    /// Receives the event's id, or why it is refused.
    pub(crate) answer: oneshot::Sender<Result<String, String>>,
}

/// A change that readers of the stream see.
#[derive(Debug, Clone)]
pub(crate) struct Update {
    /// Its name, such as `st2.execution__update`.
    pub(crate) name: &'static str,
    /// The execution's id, if it is one of an execution.
    pub(crate) id: String,
    /// The execution's action.
    pub(crate) action: String,
    /// The document as JSON.
    pub(crate) body: String,
}

impl Update {
    /// The update of this name that has this document.
    pub(crate) fn of(name: &'static str, document: &Map) -> Update {
        let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Update { name, id: text("id"), action: text("action"), body: Value::Map(document.clone()).to_json() }
    }
}

impl Engine {
    /// An engine of this broker that has not started.
    pub(crate) fn new(options: EngineOptions, broker: &Broker) -> (Engine, Receiver<OwnEvent>) {
        let (own_events, reported) = channel(OWN_EVENTS_MAX);
        let mut environments = Environments::in_folder(options.folder.join("environments"));
        environments.wheels.clone_from(&options.wheels);
        let engine = Engine {
            store: Database::at(
                location(&options.folder, options.server.as_ref()),
                options.retention,
                Status::is_final,
            ),
            cipher: Cipher::at(&options.folder.join("datastore.key")),
            queue: RunQueue::default(),
            environments,
            sensors: SensorStates::default(),
            workflows: Workflows::default(),
            python: Mutex::default(),
            evaluators: Evaluators::default(),
            runtime: broker.runtime().clone(),
            broker: broker.clone(),
            registry: ArcSwap::default(),
            registering: tokio::sync::Mutex::default(),
            pack_watch: Mutex::new(PackWatch::new(options.pack_folders(), options.configs_folder())),
            roles: ArcSwap::default(),
            admissions_changed: AtomicU64::default(),
            spool: Arc::new(Bodies::new(&Gauge::default(), SPOOL_BYTES_MAX)),
            rule_memory: Mutex::default(),
            concurrency: Mutex::default(),
            counter: AtomicU64::default(),
            updates: broadcast::channel(UPDATES_MAX).0,
            triggers: watch::channel(0).0,
            stopping: watch::channel(false).0,
            standing: Mutex::default(),
            adoption: Notify::new(),
            own_events,
            results: Arc::new(Semaphore::new(RESULTS_AT_ONCE)),
            options,
        };
        (engine, reported)
    }

    /// Stops the timers and readers once the broker stops. Actions that run go on, and the next engine finds them.
    pub(crate) async fn stop_with(&self, mut phase: watch::Receiver<Phase>) {
        // The broker is gone where its phase cannot be followed.
        let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
        self.stopping.send_replace(true);
    }

    /// Takes note of how far the engine is, and tells the broker.
    pub(crate) fn note_standing(&self, standing: Standing) {
        *self.standing() = standing;
        self.tell_broker();
    }

    /// Tells the broker as long as the server of the store cannot be reached.
    pub(crate) async fn tell_of_outages(&self) {
        let mut outages = self.store.follow_outage();
        loop {
            self.tell_broker();
            if outages.changed().await.is_err() {
                return;
            }
        }
    }

    fn tell_broker(&self) {
        let standing = self.standing();
        self.broker.note_automation(match &*standing {
            Standing::Starting => AutomationState::Starting,
            Standing::Away { reason, .. } => AutomationState::Away(reason.clone()),
            Standing::Started => match self.waits_for_store() {
                Some(reason) => AutomationState::Away(reason),
                None => AutomationState::Ready,
            },
        });
    }

    /// Says so while the documents are on a server that cannot be reached.
    fn waits_for_store(&self) -> Option<String> {
        let has_outage = self.options.server.is_some() && self.store.outage().is_some();
        has_outage.then(|| String::from("the automation waits for its store"))
    }

    /// How far the engine is.
    pub(crate) fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the engine start with a store that has been adopted.
    pub(crate) fn note_adoption(&self) {
        self.adoption.notify_one();
    }

    /// Ends once a store has been adopted.
    pub(crate) async fn adopted(&self) {
        self.adoption.notified().await;
    }

    /// Why requests have to wait, if so: what the last engine left is not taken up yet, the store cannot be used, or the
    /// documents are on a server that cannot be reached.
    pub(crate) fn is_away(&self) -> Option<String> {
        match &*self.standing() {
            Standing::Starting => return Some(String::from("the automation has not started yet")),
            Standing::Away { reason, is_adoptable: true } => return Some(reason.clone()),
            // The reason may have an address or a path.
            Standing::Away { .. } => {
                return Some(String::from("the automation cannot use its store; `imori status` says why"));
            }
            Standing::Started => {}
        }
        self.waits_for_store()
    }

    /// Whether clients on this machine need no login.
    pub(crate) fn is_open(&self) -> bool {
        self.broker.settings().config().automation.open
    }

    /// The environments of packs.
    pub(crate) fn environments(&self) -> &Environments {
        &self.environments
    }

    /// The Pythons of packs; their files are written when the first is needed.
    ///
    /// # Errors
    /// The files cannot be written.
    pub(crate) fn python_hosts(&self) -> io::Result<Arc<PythonHosts>> {
        let mut python = self.python.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hosts) = &*python {
            return Ok(Arc::clone(hosts));
        }
        let options = PythonOptions::new(std::env::vars_os());
        let hosts = Arc::new(PythonHosts::new(&self.options.folder.join("python"), options)?);
        *python = Some(Arc::clone(&hosts));
        Ok(hosts)
    }

    /// The snapshot of what is registered.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.load_full()
    }

    /// Lets one registration at a time read what is registered and replace it.
    pub(crate) async fn registering(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.registering.lock().await
    }

    /// The watch over the folders of packs.
    pub(crate) fn pack_watch(&self) -> MutexGuard<'_, PackWatch> {
        self.pack_watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the snapshot by a changed one.
    pub(crate) fn change(&self, change: impl Fn(&mut Registry)) {
        self.registry.rcu(|registry| {
            let mut changed = Registry::clone(registry);
            change(&mut changed);
            changed
        });
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        times::now()
    }

    /// The next number of a counter.
    pub(crate) fn count(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// The user for whom rules and clients without a login act.
    pub(crate) fn system_user(&self) -> &'static str {
        "stanley"
    }

    /// The user of the request that this task answers; the system's user in other tasks.
    pub(crate) fn user(&self) -> &'static str {
        requester().map_or(self.system_user(), |requester| requester.name)
    }

    /// The roles of users.
    pub(crate) fn roles(&self) -> Arc<Roles> {
        self.roles.load_full()
    }

    /// A number that changes with every change of users, roles, tokens or API keys that may end an admission.
    pub(crate) fn admissions_changed(&self) -> u64 {
        self.broker.access().changes().wrapping_add(self.admissions_changed.load(Ordering::Acquire))
    }

    /// Takes note that an admission may have ended.
    pub(crate) fn change_admissions(&self) {
        self.admissions_changed.fetch_add(1, Ordering::Release);
    }

    /// Reads the roles at the start. What is wrong is left out and returned.
    pub(crate) fn load_roles(&self) -> Vec<String> {
        let (roles, problems) = Roles::read(&self.options.folder.join("rbac"));
        self.roles.store(Arc::new(roles));
        problems.iter().map(ToString::to_string).collect()
    }

    /// Reads the roles again, and keeps the old ones if something is wrong, which is returned.
    pub(crate) fn reload_roles(&self) -> Vec<String> {
        let (roles, problems) = Roles::read(&self.options.folder.join("rbac"));
        if problems.is_empty() {
            self.roles.store(Arc::new(roles));
            self.change_admissions();
        }
        problems.iter().map(ToString::to_string).collect()
    }

    /// The folder of files of bodies that have not come whole; none of them has a name.
    pub(crate) fn spool_folder(&self) -> PathBuf {
        self.options.folder.join("spool")
    }

    /// The folder of a running execution's files.
    pub(crate) fn run_folder(&self, id: &str) -> PathBuf {
        self.options.folder.join("runs").join(id)
    }

    /// The file of what a running action has printed so far.
    pub(crate) fn output_file(&self, id: &str, stream: OutputStream) -> Option<PathBuf> {
        let is_id = id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| self.run_folder(id).join(stream.name()))
    }

    /// The document of an execution once it has ended; `None` if the engine stops before.
    pub(crate) async fn ended(&self, id: &str) -> Option<Map> {
        let observer = self.queue.observe(id);
        // It may have ended before it was observed.
        let stored = self.store.get(&EXECUTIONS, id).await.ok().flatten();
        let status =
            stored.as_ref().and_then(|document| document.get("status")?.as_str()).unwrap_or_default();
        match Status::is_final(status) {
            true => stored,
            false => observer.await.ok(),
        }
    }

    /// What rules remember of their matches.
    pub(crate) fn rule_memory(&self) -> MutexGuard<'_, RuleMemory> {
        self.rule_memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executions that concurrency policies count, and those that they delay.
    pub(crate) fn concurrency(&self) -> MutexGuard<'_, ConcurrencyLimits<Execution>> {
        self.concurrency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what the rules of the last engine remembered.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn remember(&self) -> Result<(), StoreError> {
        let states = self.store.find(Query::all(&RULE_STATES, OBJECTS_LOADED)).await?.documents;
        let open = Query::all(&EXECUTIONS, EXECUTIONS_LOADED)
            .with(Condition::Absent("end_timestamp"))
            .reading(Parts::Only(Vec::new()));
        let open = self.store.find(open).await?.documents;
        let mut memory = self.rule_memory();
        for state in states {
            if let Err(error) = memory.restore(&state) {
                warn!(error, "a rule's state cannot be read");
            }
        }
        for execution in open {
            if let Some((rule, id)) = rule_of(&execution) {
                memory.started(rule, id);
            }
        }
        Ok(())
    }

    /// Tells the readers of the stream of a change.
    pub(crate) fn tell(&self, name: &'static str, document: &Map) {
        if self.updates.receiver_count() == 0 {
            return;
        }
        // There may be no reader by now.
        let _ = self.updates.send(Update::of(name, document));
    }

    /// Changes from here on.
    pub(crate) fn updates(&self) -> broadcast::Receiver<Update> {
        self.updates.subscribe()
    }

    /// Tells the sources of events that the rules have changed.
    pub(crate) fn triggers_changed(&self) {
        self.triggers.send_modify(|number| *number += 1);
    }

    /// Reports something that rules may wait for, once there is room for it. What makes events of reports never calls this.
    pub(crate) async fn report(&self, event: OwnEvent) {
        // The receiver is gone once the engine has stopped.
        let _ = self.own_events.send(event).await;
    }

    /// Changes of the rules' triggers.
    pub(crate) fn trigger_changes(&self) -> watch::Receiver<u64> {
        self.triggers.subscribe()
    }

    /// Ends once the engine stops.
    pub(crate) async fn stopped(&self) {
        let mut stopping = self.stopping.subscribe();
        // The sender lives as long as the engine.
        let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
    }
}

/// The location of the documents of an engine with this folder and this server.
pub(crate) fn location(folder: &Path, server: Option<&ServerAddress>) -> Location {
    match server {
        Some(address) => Location::Server(Box::new(address.clone())),
        None => Location::File(folder.join("state.db")),
    }
}

/// The id of the rule that led to an execution, if one did, and the execution's id.
pub(crate) fn rule_of(execution: &Map) -> Option<(&str, &str)> {
    let rule = execution.get("context")?.get("rule")?.get("id")?.as_str()?;
    Some((rule, execution.get("id")?.as_str()?))
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("folder", &self.options.folder).finish_non_exhaustive()
    }
}
