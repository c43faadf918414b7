//! The gateway: its workers, and its configuration.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::available_parallelism;

use imori_core::time::Time;
use imori_server::broker::Broker;
use imori_server::{AcceptedConnection, GatewayFigures, RouteFigures, TakeConnections};
use tracing::{info, warn};

use crate::deliver::Deliveries;
use crate::files_watch;
use crate::limits::CONNECTIONS_MAX;
use crate::lock::lock;
use crate::outgoing::HostList;
use crate::routes::{Configuration, LoginRule, Problem, Problems, Route, load};
use crate::scripts::{ScriptError, Scripts};
use crate::shared::Shared;
use crate::workers::WorkerHandle;

/// Workers without a setting, at most.
const WORKERS_MAX: usize = 4;

/// Why a gateway cannot start.
#[derive(Debug)]
pub enum GatewayError {
    /// A thread cannot be started.
    Thread(io::Error),
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GatewayError::Thread(error) => write!(f, "a thread of the gateway cannot be started: {error}"),
        }
    }
}

impl std::error::Error for GatewayError {}

/// The routes of a file, checked.
#[derive(Debug, Clone)]
pub struct Routes {
    path: PathBuf,
    configuration: Arc<Configuration>,
}

impl Routes {
    /// Reads a routes file and the scripts that it names.
    ///
    /// # Errors
    /// All its faults, by file and line.
    pub fn read(path: &Path) -> Result<Routes, Problems> {
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("it cannot be read: {error}");
            Problems(vec![Problem { file: path.display().to_string(), line: 0, message }])
        })?;
        let configuration = load(&text, path)?;
        let faults = check_scripts(&configuration);
        match faults.is_empty() {
            true => Ok(Routes { path: path.to_owned(), configuration: Arc::new(configuration) }),
            false => Err(Problems(faults)),
        }
    }

    /// The routes as lines: methods, path, action, and user.
    pub fn lines(&self) -> Vec<String> {
        self.configuration.routes.iter().map(|route| route.line()).collect()
    }
}

/// The scripts that are no Ruby, and the hosts that are none.
fn check_scripts(configuration: &Configuration) -> Vec<Problem> {
    let file = configuration.files.first().map(|file| file.display().to_string()).unwrap_or_default();
    let mut faults: Vec<Problem> = Scripts::check(&configuration.scripts, configuration.vm)
        .into_iter()
        .map(|ScriptError { file: own, line, column, message }| Problem {
            file: if own.is_empty() { file.clone() } else { own },
            line: line as usize,
            message: if column > 0 { format!("column {column}: {message}") } else { message },
        })
        .collect();
    if let Err(message) = HostList::parse(configuration.allow_hosts.iter().map(String::as_str)) {
        faults.push(Problem { file, line: 0, message: format!("scripts: `allow_hosts`: {message}") });
    }
    faults
}

/// The gateway of a broker; it has no thread until routes are installed. A clone is another handle of the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    shared: Arc<Shared>,
    workers_max: u16,
    in_force: Mutex<InForce>,
    /// Set with the first routes.
    workers: OnceLock<Vec<WorkerHandle>>,
    /// Connections that were accepted, which chooses among workers that are equally busy.
    accepted: AtomicUsize,
}

#[derive(Default)]
struct InForce {
    routes: Option<Routes>,
    /// When these were read.
    read_at: Time,
    /// The faults of the file as it is now, if it was not taken over.
    problems: Vec<String>,
    deliveries: Deliveries,
}

impl Gateway {
    /// A gateway with so many workers; 0 means one for each core, but at most 4.
    pub fn new(broker: &Broker, workers: u16) -> Gateway {
        Gateway(Arc::new(Inner {
            shared: Arc::new(Shared::new(broker)),
            workers_max: workers,
            in_force: Mutex::default(),
            workers: OnceLock::new(),
            accepted: AtomicUsize::new(0),
        }))
    }

    /// Puts routes in force, the first ones or others. Requests that have begun keep theirs.
    ///
    /// # Errors
    /// [`GatewayError::Thread`] with the first routes.
    pub fn install(&self, routes: Routes) -> Result<(), GatewayError> {
        let is_first = self.0.workers.get().is_none();
        if is_first {
            let workers = self.0.start(&routes.configuration).map_err(GatewayError::Thread)?;
            // Only the thread that installs the first routes comes here.
            let _ = self.0.workers.set(workers);
        }
        self.0.install(routes);
        if is_first {
            let watched = files_watch::follow(Arc::downgrade(&self.0));
            self.0.shared.broker.runtime().spawn(watched);
        }
        Ok(())
    }
}

impl Inner {
    fn start(&self, configuration: &Arc<Configuration>) -> io::Result<Vec<WorkerHandle>> {
        let count = match self.workers_max {
            0 => available_parallelism().map_or(1, usize::from).min(WORKERS_MAX),
            count => usize::from(count),
        };
        (0..count).map(|number| WorkerHandle::start(&self.shared, number, configuration)).collect()
    }

    fn install(&self, routes: Routes) {
        for worker in self.workers.get().into_iter().flatten() {
            worker.install(&routes.configuration);
        }
        let mut in_force = lock(&self.in_force);
        in_force.deliveries.renew(&self.shared, &routes.configuration);
        info!(routes = routes.configuration.routes.len(), "the gateway has its routes");
        let acting = routes.configuration.routes.iter().filter(|route| route.acts_for_anybody()).count();
        if acting > 0 {
            info!(
                routes = acting,
                "routes with `user` and without `hosts` answer on loopback only to IP addresses and `localhost`; behind a \
                 proxy that keeps `Host`, add its names to `broker.host_names`"
            );
        }
        in_force.routes = Some(routes);
        in_force.read_at = self.shared.broker.now();
        in_force.problems.clear();
    }
}

impl files_watch::Followed for Inner {
    fn files(&self) -> Vec<PathBuf> {
        let in_force = lock(&self.in_force);
        in_force.routes.as_ref().map(|routes| routes.configuration.files.clone()).unwrap_or_default()
    }

    fn read_again(&self) {
        let path = lock(&self.in_force).routes.as_ref().map(|routes| routes.path.clone());
        let Some(path) = path else { return };
        match Routes::read(&path) {
            Ok(routes) => self.install(routes),
            Err(problems) => {
                lock(&self.in_force).problems = problems.0.iter().map(ToString::to_string).collect();
                for problem in problems.0 {
                    warn!(%problem, "the routes are not taken over; those in force stay");
                }
            }
        }
    }
}

impl TakeConnections for Gateway {
    fn take(&self, connection: AcceptedConnection) {
        let Some(workers) = self.0.workers.get() else { return };
        let open: usize = workers.iter().map(WorkerHandle::connections).sum();
        if open >= CONNECTIONS_MAX {
            return warn!(open, "the gateway has too many connections, and closes a new one");
        }
        let turn = self.0.accepted.fetch_add(1, Ordering::Relaxed);
        let order = (0..workers.len()).map(|at| (at + turn) % workers.len());
        let least = order.filter_map(|at| workers.get(at)).min_by_key(|worker| worker.connections());
        if let Some(worker) = least {
            worker.serve(connection);
        }
    }

    fn figures(&self) -> GatewayFigures {
        let workers = self.0.workers.get().into_iter().flatten();
        let in_force = lock(&self.0.in_force);
        let routes = in_force.routes.iter().flat_map(|routes| &routes.configuration.routes);
        let figures = |route: &Arc<Route>| {
            let (responses, time) = route.responses.read();
            let in_flight = route.in_flight.load(Ordering::Relaxed);
            RouteFigures {
                name: route.name.clone(),
                methods: route.methods.iter().map(ToString::to_string).collect(),
                hosts: route.hosts.iter().map(ToString::to_string).collect(),
                pattern: route.pattern(),
                action: route.action.name(),
                user: route.user.clone().filter(|_| route.login != LoginRule::Required),
                has_scripts: route.has_scripts(),
                in_flight,
                responses,
                time,
            }
        };
        GatewayFigures {
            connections: workers.map(WorkerHandle::connections).sum(),
            routes: routes.map(figures).collect(),
            file: in_force
                .routes
                .as_ref()
                .map(|routes| (routes.path.display().to_string(), in_force.read_at)),
            problems: in_force.problems.clone(),
            script_faults: self.0.shared.script_faults.latest(),
        }
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}
