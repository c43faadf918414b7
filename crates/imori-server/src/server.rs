//! The broker as a whole: binds the listeners, starts the threads, and stops them.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle, available_parallelism};
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::queue_restored;
use imori_core::message::DeathReason;
use imori_core::name::Name;
use imori_core::restore::Awakening;
use imori_core::world::Counter;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::{info, warn};

use crate::access::{FirstPassword, make_admin, make_operator};
use crate::broker::{Broker, OperatorRequest};
use crate::cell::Cell;
use crate::checkpoint::checkpointer::run_checkpointer;
use crate::config::Config;
use crate::http::{self, HttpService};
use crate::internal::{InternalClients, start_responders};
use crate::jwt::Issuer;
use crate::limits::{AUTOMATION_CONNECTIONS_MAX, HTTP_CONNECTIONS_MAX, HTTP_LIFE_MAX, TRANSFERS_WAITING_MAX};
use crate::login::Authenticator;
use crate::operator::Signals;
use crate::reload::{Bound, HttpServices, Listening, Reloader, bind_all, take_over};
use crate::services::{ImportDefinitions, Services};
use crate::settings::Listener;
use crate::shared::{Arrival, CellHandle, Phase, ServeError, Shared, queue_key};
use crate::slots::unpoisoned;
use crate::start::prepare::{Begun, Prepared, prepare};
use crate::start::start_error::StartError;
use crate::thread;
use crate::tls::{TlsAcceptor, TlsFiles};
use crate::transfers::serve as serve_transfers;
use crate::watch::{SpaceWatch, keep_watch};

/// A running broker.
pub struct Server {
    listeners: Vec<Listener>,
    shared: Arc<Shared>,
    reloader: Option<Reloader>,
    cells: Vec<JoinHandle<()>>,
    http: Option<JoinHandle<()>>,
    watch: Option<JoinHandle<()>>,
    checkpointer: Option<JoinHandle<()>>,
    requests: Receiver<OperatorRequest>,
    first_password: Option<FirstPassword>,
}

/// Stops a server from any thread.
#[derive(Clone)]
pub struct StopHandle(Arc<Shared>);

/// Updates the users of live connections.
#[derive(Clone)]
pub struct LiveUsers(Arc<Shared>);

impl LiveUsers {
    /// Gives every live connection of a user its new identity, or ends it if that is `None`. Soon afterwards, readers
    /// that the new rights do not allow are ended and their clients told. Applies to logins in progress too.
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
    /// Stops the server and lets connections finish what they have begun. A second call ends it at once.
    pub fn stop(&self) {
        self.0.stop();
    }
}

impl Server {
    /// Binds all listeners and starts all threads. Listeners for HTTP answer every request with 404.
    ///
    /// # Errors
    /// The configuration is refused, an address cannot be bound, a thread cannot be started, or the store cannot be
    /// opened.
    pub fn start(config: &Config) -> Result<Server, StartError> {
        Server::start_with(config, |_| Services::default())
    }

    /// Like [`Server::start`], with the services that `services` makes for the broker.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn start_with(
        config: &Config,
        services: impl FnOnce(&Broker) -> Services,
    ) -> Result<Server, StartError> {
        Server::start_all(config, None, services)
    }

    /// Like [`Server::start`], with another authenticator.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn start_with_authenticator(
        config: &Config,
        authenticator: Arc<dyn Authenticator>,
    ) -> Result<Server, StartError> {
        Server::start_all(config, Some(authenticator), |_| Services::default())
    }

    fn start_all(
        config: &Config,
        authenticator: Option<Arc<dyn Authenticator>>,
        services: impl FnOnce(&Broker) -> Services,
    ) -> Result<Server, StartError> {
        config.check().map_err(StartError::Config)?;
        let tls = TlsFiles::of(&config.tls).map(TlsAcceptor::start).transpose().map_err(StartError::Tls)?;
        let bound = bind_all(config)?;
        let listeners: Vec<Listener> = bound.iter().map(|bound| bound.listener).collect();
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| StartError::Random(error.to_string()))?;
        let count = match config.cells.count {
            0 => available_parallelism().map_or(1, usize::from),
            count => usize::from(count),
        };
        let begun = Begun {
            listeners: listeners.clone(),
            tls: tls.map(Arc::new),
            authenticator,
            server_id: server_id(&random),
        };
        let Prepared { shared, opened, awakenings } = prepare(config, count, begun)?;
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
        let limited = Arc::downgrade(&shared);
        shared.access.limit_with(Box::new(move |access| {
            limited.upgrade().iter().for_each(|shared| shared.limit_users(access));
        }));
        let operator = make_operator(&config.broker.data_dir);
        shared.access.admit_operator(operator.map_err(|error| StartError::FirstUser(error.to_string()))?);
        let space = SpaceWatch::begin(&shared, config.journal.reserve_bytes.as_usize() as u64);
        let (sender, requests) = channel();
        let mut server = Server {
            listeners,
            shared,
            reloader: None,
            cells: Vec::new(),
            http: None,
            watch: None,
            checkpointer: None,
            requests,
            first_password: None,
        };
        let first = FirstCell { awakenings, requests: Arc::new(sender) };
        let started = server.start_threads((count, first), space, bound, services);
        if started.is_err() {
            server.shared.phase.send_replace(Phase::Ended);
        }
        started.map(|()| server)
    }

    fn start_threads(
        &mut self,
        (cells, first): (usize, FirstCell),
        space: SpaceWatch,
        bound: Vec<Bound>,
        services: impl FnOnce(&Broker) -> Services,
    ) -> Result<(), StartError> {
        let requests = Arc::downgrade(&first.requests);
        let cell = self.start_cells(cells, first)?;
        self.start_watch(space)?;
        self.start_checkpointer()?;
        self.start_keys()?;
        let (thread, http) = http::start(self.shared.phase.subscribe(), self.shared.finishing.subscribe())
            .map_err(StartError::Thread)?;
        self.http = Some(thread);
        let broker = Broker::new(Arc::clone(&self.shared), requests, http.clone());
        let (transfers, requests) = mpsc::channel(TRANSFERS_WAITING_MAX);
        // Set only here.
        let _ = self.shared.transfers.set(transfers);
        http.spawn(serve_transfers(broker.clone(), requests));
        let Services { admin, monitor, automation, gateway, definitions } = services(&broker);
        if let Some(gateway) = &gateway {
            // Set only here.
            let _ = self.shared.gateway.set(Arc::clone(gateway));
        }
        self.make_users(definitions.as_deref(), &http)?;
        let service = |router, connections_max, life_max| {
            HttpService::new(&self.shared, router, connections_max, life_max)
        };
        let served = HttpServices {
            monitor: service(monitor, HTTP_CONNECTIONS_MAX, Some(HTTP_LIFE_MAX)),
            admin: service(admin, HTTP_CONNECTIONS_MAX, Some(HTTP_LIFE_MAX)),
            // Readers of the stream stay.
            automation: service(automation, AUTOMATION_CONNECTIONS_MAX, None),
            gateway: HttpService::handing_over(&self.shared, gateway),
        };
        let runtimes = (cell, http.clone());
        let listening = Listening::start(Arc::clone(&self.shared), runtimes, served, bound);
        let listening = listening.map_err(StartError::Thread)?;
        self.reloader = Some(Reloader::new(Arc::clone(&self.shared), definitions, http, listening));
        Ok(())
    }

    /// Applies the definitions file, and creates the user `admin` if there is no user.
    fn make_users(
        &mut self,
        importer: Option<&dyn ImportDefinitions>,
        runtime: &Handle,
    ) -> Result<(), StartError> {
        let config = &self.shared.settings.load().config;
        let offered = self.shared.access.offer_scram(config.users.scram);
        offered.map_err(|error| StartError::Scram(error.to_string()))?;
        let definitions = take_over(config, importer, &self.shared.access, runtime);
        definitions.map_err(|error| StartError::Definitions(error.to_string()))?;
        if self.shared.access.awaits_recovery() {
            return Ok(());
        }
        let made = make_admin(&self.shared.access, config.users.admin_password_file.as_deref());
        self.first_password = made.map_err(|error| StartError::FirstUser(error.to_string()))?;
        self.shared.access.warn_of_missing_scram_keys();
        Ok(())
    }

    /// The bound listeners.
    pub fn listeners(&self) -> &[Listener] {
        &self.listeners
    }

    /// Takes the password of `admin`, if this start created the user.
    pub fn take_first_password(&mut self) -> Option<FirstPassword> {
        self.first_password.take()
    }

    /// The handle that changes the configuration at run time.
    pub fn reloader(&self) -> Reloader {
        self.reloader.clone().expect("a server that started has one")
    }

    /// The handle that stops the server.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(Arc::clone(&self.shared))
    }

    /// The handle that tells live connections of changed users.
    pub fn live_users(&self) -> LiveUsers {
        LiveUsers(Arc::clone(&self.shared))
    }

    /// The factory of internal clients.
    pub fn internal_clients(&self) -> InternalClients {
        InternalClients::of(&self.shared)
    }

    /// Waits until the server has stopped, ignoring operators' requests.
    ///
    /// # Errors
    /// A fault ended it.
    pub fn join(self) -> Result<(), ServeError> {
        self.serve(|_| {})
    }

    /// Waits until the server has stopped; `on_request` handles operators' requests on this thread meanwhile.
    ///
    /// # Errors
    /// A fault ended it.
    pub fn serve(self, on_request: impl FnMut(OperatorRequest)) -> Result<(), ServeError> {
        // Ends when the cell that receives signals has ended.
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
        self.shared.handshakers.close();
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

    /// Starts the cells; returns the runtime of the first one, which accepts connections.
    fn start_cells(&mut self, count: usize, first: FirstCell) -> Result<Handle, StartError> {
        let (handles, arrivals): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (sender, receiver) = mpsc::unbounded_channel();
                (CellHandle::new(sender), receiver)
            })
            .unzip();
        // Set only here.
        let _ = self.shared.cells.set(handles.into_boxed_slice());
        let mut first = Some(first);
        let (started, starting) = channel();
        for (id, arrivals) in (0..).zip(arrivals) {
            let (shared, first, started) = (Arc::clone(&self.shared), first.take(), started.clone());
            let cell = Builder::new()
                .name(format!("cell-{id}"))
                .spawn(move || run_cell(id, shared, arrivals, first, started));
            self.cells.push(cell.map_err(StartError::Thread)?);
        }
        drop(started);
        // Waits for all cells, because a broker reported ready must handle signals. A cell that fails reports it when
        // it ends.
        let mut runtimes: Vec<(u16, Handle)> = starting.into_iter().collect();
        runtimes.sort_by_key(|(cell, _)| *cell);
        let first = runtimes.into_iter().next().filter(|(cell, _)| *cell == 0);
        let failed = || StartError::Thread(io::Error::other("a cell has no runtime"));
        first.map(|(_, runtime)| runtime).ok_or_else(failed)
    }

    fn start_checkpointer(&mut self) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        let checkpointer =
            Builder::new().name(String::from("checkpointer")).spawn(move || run_checkpointer(&shared));
        self.checkpointer = Some(checkpointer.map_err(StartError::Thread)?);
        Ok(())
    }

    /// Starts the thread that refreshes the keys for access tokens, if an issuer is configured. It is never joined,
    /// because an issuer may block it.
    fn start_keys(&self) -> Result<(), StartError> {
        let access = Arc::clone(&self.shared.access);
        if access.issuer().is_none() {
            return Ok(());
        }
        let run = move || access.issuer().into_iter().for_each(Issuer::run);
        Builder::new().name(String::from("jwt-keys")).spawn(run).map(drop).map_err(StartError::Thread)
    }

    fn start_watch(&mut self, space: SpaceWatch) -> Result<(), StartError> {
        let shared = Arc::clone(&self.shared);
        let watch = Builder::new().name(String::from("watch")).spawn(move || keep_watch(&shared, space));
        self.watch = Some(watch.map_err(StartError::Thread)?);
        Ok(())
    }
}

/// A unique id of this run of the broker, random like nats-server's.
fn server_id(random: &[u8; 16]) -> String {
    format!("I{:032X}", u128::from_be_bytes(*random))
}

/// A stop that takes longer than this is logged.
const QUIET_STOP: Duration = Duration::from_millis(500);

/// The first cell's duties besides serving connections.
struct FirstCell {
    awakenings: Vec<Awakening>,
    requests: Arc<Sender<OperatorRequest>>,
}

fn run_cell(
    id: u16,
    shared: Arc<Shared>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    first: Option<FirstCell>,
    started: Sender<(u16, Handle)>,
) {
    let for_start = Arc::clone(&shared);
    thread::run(id, shared, arrivals, move || {
        let tell = || drop(started.send((id, Handle::current())));
        let Some(FirstCell { awakenings, requests }) = first else { return tell() };
        Cell::current(|cell| {
            cell.begin_turn();
            awakenings.iter().for_each(|awakening| queue_restored(cell, awakening));
            start_responders(cell);
        });
        tokio::spawn(end_in_time(Arc::clone(&for_start)));
        match Signals::listen() {
            Ok(signals) => drop(tokio::spawn(signals.obey(for_start, requests))),
            Err(error) => {
                warn!(%error, "signals cannot be received; SIGTERM ends the broker without a goodbye");
            }
        }
        tell();
    });
}

/// Ends the broker after the shutdown deadline, and logs how many connections it waits for.
async fn end_in_time(shared: Arc<Shared>) {
    let mut phase = shared.phase.subscribe();
    let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
    let deadline = shared.settings.load().config.broker.shutdown_deadline_s.duration();
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
