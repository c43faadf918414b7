//! The broker as a whole: binds the listeners, starts the cells, stops them.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

use axum::Router;
use imori_core::authorize::Identity;
use imori_core::broker::queue_restored;
use imori_core::message::DeathReason;
use imori_core::name::Name;
use imori_core::restore::Awakening;
use imori_core::turn::StartTls;
use imori_core::world::Counter;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::access::{FirstPassword, make_admin, make_operator};
use crate::admin;
use crate::cell::Cell;
use crate::checkpoint::checkpointer::run_checkpointer;
use crate::config::{Config, ListenerName, NatsTls, ProtocolName, Service};
use crate::http::{self, Guarded, HttpListener, Security};
use crate::internal::{InternalClients, start_responders};
use crate::jwt::Issuer;
use crate::limits::ADMIN_BODY_BYTES_MAX;
use crate::login::Authenticator;
use crate::metrics::{CpuMeter, Metrics, Rates};
use crate::monitor::{self, Monitored, Requests, Shown, server_id};
use crate::net::listener::{Listener, accept, bind};
use crate::operator::{OperatorRequest, Signals, stop};
use crate::requests::administered::Administered;
use crate::settings::Settings;
use crate::shared::{Arrival, CellHandle, ListenerKind, Phase, ServeError, Shared, queue_key};
use crate::slots::unpoisoned;
use crate::start::prepare::{Prepared, prepare, settings};
use crate::start::start_error::StartError;
use crate::thread;
use crate::tls::{TlsAcceptor, TlsFiles};
use crate::watch::{Marks, SpaceWatch, keep_watch};

/// A running broker.
pub struct Server {
    listeners: Vec<Listener>,
    shared: Arc<Shared>,
    tls: Option<Arc<TlsAcceptor>>,
    cells: Vec<JoinHandle<()>>,
    http: Option<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
    checkpointer: Option<JoinHandle<()>>,
    requests: Receiver<OperatorRequest>,
    first_password: Option<FirstPassword>,
}

/// Stops a server from anywhere.
#[derive(Clone)]
pub struct StopHandle(Arc<Shared>);

/// The users of live connections.
#[derive(Clone)]
pub struct LiveUsers(Arc<Shared>);

impl LiveUsers {
    /// Gives every live connection of a user its new identity, or ends it where there is none. Readers that the new
    /// rights do not allow are ended, and clients told, within moments. A login that is being checked meanwhile is
    /// changed too.
    pub fn renew_identity(&self, user: &Name, identity: Option<Identity>) {
        self.0.renew_identity(user, identity);
    }
}

impl fmt::Debug for LiveUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveUsers").finish_non_exhaustive()
    }
}

impl StopHandle {
    /// Asks the server to stop: connections may finish what they have begun. A second call ends it at once.
    pub fn stop(&self) {
        stop(&self.0);
    }
}

impl Server {
    /// Binds all listeners and starts the cells.
    ///
    /// # Errors
    /// The configuration exposes a listener, an address cannot be listened on, or a thread cannot be started.
    pub fn start(config: &Config) -> Result<Server, StartError> {
        Server::start_all(config, None)
    }

    /// Does as [`Server::start`], with something else that checks credentials.
    ///
    /// # Errors
    /// As those of [`Server::start`].
    pub fn start_with(config: &Config, authenticator: Arc<dyn Authenticator>) -> Result<Server, StartError> {
        Server::start_all(config, Some(authenticator))
    }

    fn start_all(
        config: &Config,
        authenticator: Option<Arc<dyn Authenticator>>,
    ) -> Result<Server, StartError> {
        config.check().map_err(StartError::Config)?;
        let tls = TlsFiles::of(&config.tls).map(TlsAcceptor::start).transpose().map_err(StartError::Tls)?;
        let tls = tls.map(Arc::new);
        let mut listeners = Vec::new();
        let mut sockets = Vec::new();
        for service in ProtocolName::ALL.map(Service::Messages) {
            bind_both(service, config, &mut listeners, &mut sockets)?;
        }
        let client_address = address_of(&listeners, ProtocolName::Nats).or(listeners.first());
        let Some(client_address) = client_address.map(|listener| listener.address) else {
            return Err(StartError::NoListener);
        };
        bind_both(Service::WebSocket, config, &mut listeners, &mut sockets)?;
        let mut monitors = Vec::new();
        bind_both(Service::NatsMonitor, config, &mut listeners, &mut monitors)?;
        let mut admins = Vec::new();
        bind_both(Service::Admin, config, &mut listeners, &mut admins)?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| StartError::Random(error.to_string()))?;
        let server_id = server_id(&random);
        let count = match config.cells.count {
            0 => available_parallelism().map_or(1, usize::from),
            count => usize::from(count),
        };
        let Prepared { shared, nats_vhost, opened, awakenings } = prepare(config, count, authenticator)?;
        let shared = Arc::new(shared);
        let named = Arc::downgrade(&shared);
        shared.pager.name_queues(Box::new(move |id| {
            named.upgrade()?.queues.with(queue_key(id), |queue| queue.name().to_string())
        }));
        let ends = Arc::downgrade(&shared);
        let end = move |why: &str| ends.upgrade().into_iter().for_each(|shared| shared.fail_of_disk(why));
        shared.journal.start(opened, Box::new(end)).map_err(StartError::Thread)?;
        let renewed = Arc::downgrade(&shared);
        shared.access.renew_with(Box::new(move |user, identity| {
            renewed.upgrade().iter().for_each(|shared| shared.renew_identity(user, identity.cloned()));
        }));
        let operator = make_operator(&config.broker.data_dir);
        shared.access.admit_operator(operator.map_err(|error| StartError::FirstUser(error.to_string()))?);
        let first_password = make_admin(&shared.access, config.users.admin_password_file.as_deref())
            .map_err(|error| StartError::FirstUser(error.to_string()))?;
        let space = SpaceWatch::begin(&shared, config.journal.reserve_bytes.as_usize() as u64);
        let mark_bytes = shared.memory.mark_bytes();
        let settings =
            Arc::new(settings(config, nats_vhost, mark_bytes, &server_id, client_address, tls.clone()));
        let (sender, requests) = channel();
        let mut server = Server {
            listeners,
            shared,
            tls: tls.clone(),
            cells: Vec::new(),
            http: None,
            watch: None,
            checkpointer: None,
            requests,
            first_password,
        };
        let first = FirstCell {
            sockets,
            busy_percent: config.cells.busy_percent,
            deadline: config.broker.shutdown_deadline_s.duration(),
            awakenings,
            requests: sender,
        };
        server.start_cells(count, config, &settings, first)?;
        server.start_watch(config, space, tls.clone())?;
        server.start_checkpointer()?;
        server.start_keys()?;
        let metrics = server.metrics(config, &settings);
        let monitor = server.monitor(config, &settings, server_id, client_address, &metrics);
        let monitor = monitor.map(|router| HttpListener { sockets: monitors, router });
        let admin = server.admin(config, &settings, metrics);
        let admin = HttpListener { sockets: admins, router: admin };
        let security = Security { tls, proxies: config.broker.proxy_from.clone().into() };
        server.start_http(monitor.into_iter().chain([admin]).collect(), security)?;
        Ok(server)
    }

    /// The listeners that were bound.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Gives the password of `admin` once, where this start made it.
    pub fn take_first_password(&mut self) -> Option<FirstPassword> {
        self.first_password.take()
    }

    /// The certificates in force, where there are any.
    pub fn certificates(&self) -> Option<Arc<TlsAcceptor>> {
        self.tls.clone()
    }

    /// Gives the handle by which others stop the server.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.shared))
    }

    /// The users of live connections, to tell them of changes.
    pub fn live_users(&self) -> LiveUsers {
        LiveUsers(Arc::clone(&self.shared))
    }

    /// Gives the factory of clients inside the process.
    pub fn internal_clients(&self) -> InternalClients {
        InternalClients::of(&self.shared)
    }

    /// Waits until the server has stopped, and ignores what an operator asks for until then.
    ///
    /// # Errors
    /// A fault ended it.
    pub fn join(self) -> Result<(), ServeError> {
        self.serve(|_| {})
    }

    /// Waits until the server has stopped; `on_request` sees to what an operator asks for until then, on this thread.
    ///
    /// # Errors
    /// A fault ended it.
    pub fn serve(self, on_request: impl FnMut(OperatorRequest)) -> Result<(), ServeError> {
        // They end with the cell that hears the signals.
        self.requests.into_iter().for_each(on_request);
        for cell in self.cells {
            if cell.join().is_err() {
                self.shared.fail("a cell ended in a panic");
            }
        }
        self.shared.phase.send_replace(Phase::Ended);
        if self.http.is_some_and(|http| http.join().is_err()) {
            warn!("the thread of HTTP ended in a panic");
        }
        if self.watch.is_some_and(|watch| watch.join().is_err()) {
            warn!("the watch ended in a panic");
        }
        self.shared.verifiers.close();
        self.shared.access.issuer().into_iter().for_each(Issuer::close);
        self.shared.pager.close();
        self.shared.checkpointer.end();
        if self.checkpointer.is_some_and(|checkpointer| checkpointer.join().is_err()) {
            warn!("the checkpointer ended in a panic");
        }
        self.shared.journal.close();
        let counted = |event| {
            let cells = self.shared.cells.get().into_iter().flatten();
            cells.map(|cell| cell.counters.get(event)).sum::<u64>()
        };
        info!(
            published = counted(Counter::Published),
            unroutable = counted(Counter::Unroutable),
            replies_dropped = counted(Counter::ReplyDropped),
            dead_lettered = DeathReason::ALL.map(Counter::dead_lettered).map(counted).iter().sum::<u64>(),
            cut_too_slow = counted(Counter::CutTooSlow),
            faults = counted(Counter::Fault),
            "stopped"
        );
        match unpoisoned(self.shared.fault.lock()).take() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    fn start_cells(
        &mut self,
        count: usize,
        config: &Config,
        settings: &Arc<Settings>,
        first: FirstCell,
    ) -> Result<(), StartError> {
        let connections_max = config.limits.connections as usize;
        let (handles, arrivals): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (sender, receiver) = mpsc::unbounded_channel();
                (CellHandle::new(connections_max, sender), receiver)
            })
            .unzip();
        // Nobody else has it yet.
        let _ = self.shared.cells.set(handles.into_boxed_slice());
        let mut first = Some(first);
        let (started, starting) = channel();
        for (id, arrivals) in (0..).zip(arrivals) {
            let (shared, settings, first) = (Arc::clone(&self.shared), Arc::clone(settings), first.take());
            let started = started.clone();
            let cell = Builder::new()
                .name(format!("cell-{id}"))
                .spawn(move || run_cell(id, shared, settings, arrivals, first, started));
            match cell {
                Ok(cell) => self.cells.push(cell),
                Err(error) => {
                    self.shared.phase.send_replace(Phase::Ended);
                    return Err(StartError::Thread(error));
                }
            }
        }
        drop(started);
        // Whoever is told that the broker is ready may send it signals. A cell that fails says so at the end.
        while starting.recv().is_ok() {}
        Ok(())
    }

    fn start_checkpointer(&mut self) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        let checkpointer =
            Builder::new().name(String::from("checkpointer")).spawn(move || run_checkpointer(&shared));
        self.checkpointer = Some(checkpointer.map_err(StartError::Thread)?);
        Ok(())
    }

    /// Starts the thread that keeps the keys of access tokens up to date, if there are any. Nobody waits for its end, as
    /// an issuer may take its time.
    fn start_keys(&self) -> Result<(), StartError> {
        let access = Arc::clone(&self.shared.access);
        if access.issuer().is_none() {
            return Ok(());
        }
        let run = move || access.issuer().into_iter().for_each(Issuer::run);
        let started = Builder::new().name(String::from("jwt-keys")).spawn(run);
        started.map(drop).map_err(|error| {
            self.shared.phase.send_replace(Phase::Ended);
            StartError::Thread(error)
        })
    }

    fn start_watch(
        &mut self,
        config: &Config,
        space: SpaceWatch,
        tls: Option<Arc<TlsAcceptor>>,
    ) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        let marks = Marks {
            slow_flush: config.journal.slow_flush_ms.duration(),
            stalled_flush: config.journal.stalled_flush_ms.duration(),
        };
        match Builder::new()
            .name(String::from("watch"))
            .spawn(move || keep_watch(&shared, &marks, space, tls.as_deref()))
        {
            Ok(thread) => self.watch = Some(thread),
            Err(error) => {
                self.shared.phase.send_replace(Phase::Ended);
                return Err(StartError::Thread(error));
            }
        }
        Ok(())
    }

    /// Makes the source of the numbers for Prometheus.
    fn metrics(&self, config: &Config, settings: &Settings) -> Arc<Metrics> {
        Arc::new(Metrics {
            tls: self.tls.clone(),
            node: node_name(settings),
            disk_reserve_bytes: config.journal.reserve_bytes.as_usize() as u64,
            started: self.shared.clock.now(),
            started_s: Metrics::now_s(),
            rates: Rates::default(),
            told: Mutex::default(),
            shared: Arc::clone(&self.shared),
        })
    }

    /// Makes the answers of the monitor, if it listens anywhere.
    fn monitor(
        &self,
        config: &Config,
        settings: &Settings,
        server_id: String,
        client_address: SocketAddr,
        metrics: &Arc<Metrics>,
    ) -> Option<Router> {
        let is_monitor = |listener: &&Listener| listener.name.service == Service::NatsMonitor;
        let &Listener { address: http_address, .. } = self.listeners.iter().find(is_monitor)?;
        let has_nats = address_of(&self.listeners, ProtocolName::Nats).is_some();
        let monitored = Monitored {
            server_id,
            client_address,
            http_address,
            guarded: Arc::new(Guarded { host_names: config.broker.host_names.clone(), body_bytes_max: 0 }),
            nats: has_nats.then(|| Arc::clone(&settings.protocols.nats)),
            server_name: settings.protocols.nats.server_name.clone(),
            connections_max: config.limits.connections,
            message_bytes_max: config.limits.message_bytes.as_usize(),
            unsent_bytes_max: settings.outbound.unsent_bytes_max,
            login_timeout: config.limits.login_timeout_s.duration(),
            stalled_flush: config.journal.stalled_flush_ms.duration(),
            cores: available_parallelism().map_or(1, usize::from),
            started: self.shared.clock.now(),
            cpu: CpuMeter::start(),
            requests: Requests::default(),
            metrics: Arc::clone(metrics),
            shown: Shown::default(),
            shared: Arc::clone(&self.shared),
        };
        Some(monitor::routes(Arc::new(monitored)))
    }

    /// Makes the answers of the admin listener.
    fn admin(&self, config: &Config, settings: &Settings, metrics: Arc<Metrics>) -> Router {
        let administered = Administered {
            guarded: Arc::new(Guarded {
                host_names: config.broker.host_names.clone(),
                body_bytes_max: ADMIN_BODY_BYTES_MAX,
            }),
            trusts_network: settings.trusts_network,
            listeners: self.listeners.clone(),
            node: node_name(settings),
            cores: available_parallelism().map_or(1, usize::from),
            started: self.shared.clock.now(),
            stalled_flush: config.journal.stalled_flush_ms.duration(),
            metrics,
            shared: Arc::clone(&self.shared),
        };
        admin::routes(Arc::new(administered))
    }

    /// Serves those of these listeners that have a socket.
    fn start_http(&mut self, mut listeners: Vec<HttpListener>, security: Security) -> Result<(), StartError> {
        listeners.retain(|listener| !listener.sockets.is_empty());
        if listeners.is_empty() {
            return Ok(());
        }
        match http::start(listeners, security, self.shared.phase.subscribe()) {
            Ok(thread) => self.http = Some(thread),
            Err(error) => {
                self.shared.phase.send_replace(Phase::Ended);
                return Err(StartError::Thread(error));
            }
        }
        Ok(())
    }
}

/// The broker's name, as nodes of RabbitMQ are named.
fn node_name(settings: &Settings) -> String {
    format!("{}@localhost", settings.protocols.nats.server_name)
}

fn address_of(listeners: &[Listener], protocol: ProtocolName) -> Option<&Listener> {
    listeners.iter().find(|listener| listener.name.service == Service::Messages(protocol))
}

/// Binds the addresses of a service, without TLS and with it. One of IPv6 may be left out where the host has none.
fn bind_both(
    service: Service,
    config: &Config,
    listeners: &mut Vec<Listener>,
    sockets: &mut Vec<(ListenerKind, TcpListener)>,
) -> Result<(), StartError> {
    for name in [ListenerName::plain(service), ListenerName::tls(service)] {
        for address in config.listeners.of(name) {
            match bind(*address) {
                Ok((socket, bound)) => {
                    listeners.push(Listener { name, address: bound });
                    sockets.push((listener_kind(name, config), socket));
                }
                Err(error) if address.is_left_out(&error) => {}
                Err(error) => return Err(StartError::Bind { name, address: *address, error }),
            }
        }
    }
    Ok(())
}

fn listener_kind(name: ListenerName, config: &Config) -> ListenerKind {
    let start_tls = match config.nats.tls {
        _ if name != ListenerName::plain(Service::Messages(ProtocolName::Nats)) => StartTls::No,
        NatsTls::None => StartTls::No,
        NatsTls::Offered => StartTls::Offered,
        NatsTls::Demanded => StartTls::Demanded,
    };
    ListenerKind { name, start_tls, accepts_plaintext: config.broker.accept_plaintext.contains(&name) }
}

/// A stop that takes longer than this is told of in the log.
const QUIET_STOP: Duration = Duration::from_millis(500);

/// The duties that the first cell has besides its connections.
struct FirstCell {
    sockets: Vec<(ListenerKind, TcpListener)>,
    busy_percent: u8,
    deadline: Duration,
    awakenings: Vec<Awakening>,
    requests: Sender<OperatorRequest>,
}

fn run_cell(
    id: u16,
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    first: Option<FirstCell>,
    started: Sender<()>,
) {
    let for_start = Arc::clone(&shared);
    thread::run(id, shared, settings, arrivals, move || {
        let _started = started;
        let Some(FirstCell { sockets, busy_percent, deadline, awakenings, requests }) = first else {
            return;
        };
        Cell::current(|cell| {
            cell.begin_turn();
            awakenings.iter().for_each(|awakening| queue_restored(cell, awakening));
            start_responders(cell);
        });
        for (listener, socket) in sockets {
            tokio::spawn(accept(socket, listener, Arc::clone(&for_start), busy_percent));
        }
        tokio::spawn(end_in_time(Arc::clone(&for_start), deadline));
        match Signals::listen() {
            Ok(signals) => drop(tokio::spawn(signals.obey(for_start, requests))),
            Err(error) => {
                warn!(%error, "signals cannot be received; SIGTERM ends the broker without a goodbye");
            }
        }
    });
}

/// Ends the broker when its connections have had the time to finish, and says for how many it waits.
async fn end_in_time(shared: Arc<Shared>, deadline: Duration) {
    let mut phase = shared.phase.subscribe();
    let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
    let end = tokio::time::Instant::now() + deadline;
    let connections =
        || shared.cells.get().into_iter().flatten().map(CellHandle::socket_connections).sum::<usize>();
    tokio::time::sleep(QUIET_STOP.min(deadline)).await;
    let seconds = deadline.as_secs();
    info!(
        connections = connections(),
        "waiting for clients to hang up, for {seconds} s since the stop at most"
    );
    tokio::time::sleep_until(end).await;
    warn!(connections = connections(), "clients that did not hang up in time are cut");
    shared.phase.send_replace(Phase::Ended);
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listeners", &self.listeners).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
