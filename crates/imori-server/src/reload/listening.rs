//! The open listeners, and how a reload replaces them.
//!
//! A socket whose address stays is kept, even if it changes its protocol, so that no client waiting to be accepted is
//! lost. Accepted connections are independent of their listener.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use socket2::SockRef;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tracing::{info, warn};

use crate::config::{Config, ListenAddress, ListenerName, NatsTls, ProtocolName, Service, shares_port};
use crate::http::{self, HttpService};
use crate::limits::ACCEPT_BACKLOG;
use crate::net::listener::{accept, bind};
use crate::settings::Listener;
use crate::shared::{ListenerKind, Phase, Shared};
use crate::slots::unpoisoned;
use crate::start::start_error::StartError;
use imori_core::turn::StartTls;

/// A bound socket that is not served yet.
pub(crate) struct Bound {
    wanted: ListenAddress,
    pub(crate) listener: Listener,
    socket: TcpListener,
}

/// Binds all addresses of a configuration. An IPv6 address may be left out if the host has no IPv6.
///
/// # Errors
/// An address cannot be bound, or no listener for messages is left.
pub(crate) fn bind_all(config: &Config) -> Result<Vec<Bound>, StartError> {
    let mut bound = Vec::new();
    for (name, address) in config.open_listeners() {
        bound.extend(bind_one(name, address)?);
    }
    has_messages(bound.iter().map(|bound| bound.listener.name))?;
    Ok(bound)
}

fn bind_one(name: ListenerName, wanted: ListenAddress) -> Result<Option<Bound>, StartError> {
    match bind(wanted) {
        Ok((socket, address)) => Ok(Some(Bound { wanted, listener: Listener { name, address }, socket })),
        Err(error) if wanted.is_left_out(&error) => Ok(None),
        Err(error) => Err(StartError::Bind { name, address: wanted, error }),
    }
}

fn has_messages(mut names: impl Iterator<Item = ListenerName>) -> Result<(), StartError> {
    match names.any(|name| name.service.takes_messages()) {
        true => Ok(()),
        false => Err(StartError::NoListener),
    }
}

/// What HTTP listeners serve.
pub(crate) struct HttpServices {
    pub(crate) monitor: HttpService,
    pub(crate) admin: HttpService,
    pub(crate) automation: HttpService,
    pub(crate) gateway: HttpService,
}

/// The open listeners.
pub(crate) struct Listening {
    shared: Arc<Shared>,
    /// The runtimes of the accepting cell and of HTTP.
    runtimes: (Handle, Handle),
    http: HttpServices,
    open: Mutex<Vec<Open>>,
}

struct Open {
    wanted: ListenAddress,
    listener: Listener,
    kind: ListenerKind,
    socket: TcpListener,
    task: AbortHandle,
}

/// Listeners to open in place of the current ones; everything that can fail is done.
pub(crate) struct Planned(Vec<Next>);

struct Next {
    wanted: ListenAddress,
    listener: Listener,
    kind: ListenerKind,
    socket: Socket,
}

enum Socket {
    /// Continues unchanged.
    Kept,
    /// Is served differently from now on, through this handle.
    Taken(TcpListener),
    /// Was just bound; the second handle serves it.
    New(TcpListener, TcpListener),
}

impl Planned {
    /// The listeners, with their actual ports.
    pub(crate) fn listeners(&self) -> Vec<Listener> {
        self.0.iter().map(|next| next.listener).collect()
    }
}

impl Listening {
    /// Serves the bound sockets.
    ///
    /// # Errors
    /// The process is out of file descriptors.
    pub(crate) fn start(
        shared: Arc<Shared>,
        runtimes: (Handle, Handle),
        http: HttpServices,
        bound: Vec<Bound>,
    ) -> io::Result<Arc<Listening>> {
        let listening = Listening { shared, runtimes, http, open: Mutex::default() };
        let next = bound.into_iter().map(|Bound { wanted, listener, socket }| {
            let kind = kind(listener.name, &listening.shared.settings.load().config);
            let handle = socket.try_clone()?;
            Ok(Next { wanted, listener, kind, socket: Socket::New(socket, handle) })
        });
        let planned = Planned(next.collect::<io::Result<_>>()?);
        listening.commit(planned);
        let listening = Arc::new(listening);
        listening.runtimes.0.spawn(Arc::clone(&listening).close_at_the_end());
        Ok(listening)
    }

    /// Closes the messaging listeners when the broker starts to stop; administration stays available.
    async fn close_at_the_end(self: Arc<Listening>) {
        let mut phase = self.shared.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase > Phase::Serving).await;
        unpoisoned(self.open.lock()).retain(|open| is_http(open.kind.name.service));
    }

    /// Binds the new addresses of a configuration. If one shares a port with a listener that will be closed, that
    /// listener is closed first.
    ///
    /// # Errors
    /// An address cannot be bound; all listeners are restored.
    pub(crate) fn prepare(&self, config: &Config) -> Result<Planned, StartError> {
        let mut open = unpoisoned(self.open.lock());
        let mut left: Vec<usize> = (0..open.len()).collect();
        let mut shut = Vec::new();
        let planned = self.plan(config, &mut open, &mut left, &mut shut);
        if planned.is_err() {
            shut.into_iter().for_each(|index| self.revive(&mut open, index));
        }
        planned.map(Planned)
    }

    fn plan(
        &self,
        config: &Config,
        open: &mut [Open],
        left: &mut Vec<usize>,
        shut: &mut Vec<usize>,
    ) -> Result<Vec<Next>, StartError> {
        let wanted: Vec<_> = config.open_listeners().collect();
        let mut of_wanted: Vec<Option<usize>> = wanted
            .iter()
            .map(|&(name, address)| {
                take(left, |index| {
                    open.get(index).is_some_and(|open| (open.listener.name, open.wanted) == (name, address))
                })
            })
            .collect();
        // A listener at the same address hands its socket over.
        for (found, (_, address)) in of_wanted.iter_mut().zip(&wanted) {
            if found.is_none() && address.0.port() != 0 {
                *found = take(left, |index| {
                    open.get(index).is_some_and(|open| open.listener.address == address.0)
                });
            }
        }
        let mut planned = Vec::new();
        for ((name, address), found) in wanted.into_iter().zip(of_wanted) {
            let kind = kind(name, config);
            let refuse = |error| StartError::Bind { name, address, error };
            if let Some(kept) = found.and_then(|index| open.get(index)) {
                let listener = Listener { name, address: kept.listener.address };
                let socket = match kept.kind == kind {
                    true => Socket::Kept,
                    false => Socket::Taken(kept.socket.try_clone().map_err(refuse)?),
                };
                planned.push(Next { wanted: address, listener, kind, socket });
                continue;
            }
            for &index in left.iter() {
                let Some(closed) = open.get(index) else { continue };
                if shares_port(ListenAddress(closed.listener.address), address) && !shut.contains(&index) {
                    closed.task.abort();
                    let _ = SockRef::from(&closed.socket).shutdown(std::net::Shutdown::Both);
                    shut.push(index);
                }
            }
            if let Some(Bound { wanted, listener, socket }) = bind_one(name, address)? {
                let handle = socket.try_clone().map_err(refuse)?;
                planned.push(Next { wanted, listener, kind, socket: Socket::New(socket, handle) });
            }
        }
        has_messages(planned.iter().map(|next| next.listener.name))?;
        Ok(planned)
    }

    /// Reopens a listener that was shut for another one that could not be bound.
    fn revive(&self, open: &mut [Open], index: usize) {
        let Some(open) = open.get_mut(index) else { return };
        let again = SockRef::from(&open.socket).listen(ACCEPT_BACKLOG).and_then(|()| open.socket.try_clone());
        match again {
            Ok(socket) => open.task = self.serve(socket, open.kind),
            Err(error) => {
                let Listener { name, address } = open.listener;
                warn!(listener = %name, %address, %error, "a listener cannot be opened again");
            }
        }
    }

    /// Serves the planned listeners and closes all others. Connections stay.
    pub(crate) fn commit(&self, planned: Planned) {
        let mut open = unpoisoned(self.open.lock());
        let mut before = std::mem::take(&mut *open);
        for Next { wanted, listener, kind, socket } in planned.0 {
            let kept = before.iter().position(|open| open.listener.address == listener.address);
            let kept = kept.map(|index| before.swap_remove(index));
            let next = match (socket, kept) {
                (Socket::New(socket, handle), _) => Some((socket, self.serve(handle, kind))),
                (Socket::Kept, Some(kept)) => Some((kept.socket, kept.task)),
                (Socket::Taken(handle), Some(kept)) => {
                    kept.task.abort();
                    Some((kept.socket, self.serve(handle, kind)))
                }
                (Socket::Kept | Socket::Taken(_), None) => None,
            };
            open.extend(next.map(|(socket, task)| Open { wanted, listener, kind, socket, task }));
        }
        for closed in before {
            closed.task.abort();
            let Listener { name, address } = closed.listener;
            info!(listener = %name, %address, "a listener is closed; its connections stay");
        }
    }

    fn serve(&self, socket: TcpListener, kind: ListenerKind) -> AbortHandle {
        let (cell, http) = &self.runtimes;
        let task = match kind.name.service {
            Service::NatsMonitor => http.spawn(http::accept(socket, kind, self.http.monitor.clone())),
            Service::Admin => http.spawn(http::accept(socket, kind, self.http.admin.clone())),
            Service::Automation => http.spawn(http::accept(socket, kind, self.http.automation.clone())),
            Service::Http => http.spawn(http::accept(socket, kind, self.http.gateway.clone())),
            Service::Messages(_) | Service::WebSocket => {
                cell.spawn(accept(socket, kind, Arc::clone(&self.shared)))
            }
        };
        task.abort_handle()
    }
}

fn is_http(service: Service) -> bool {
    matches!(service, Service::NatsMonitor | Service::Admin | Service::Automation | Service::Http)
}

/// Removes the first index that satisfies the condition.
fn take(left: &mut Vec<usize>, is_meant: impl Fn(usize) -> bool) -> Option<usize> {
    let at = left.iter().position(|index| is_meant(*index))?;
    Some(left.remove(at))
}

fn kind(name: ListenerName, config: &Config) -> ListenerKind {
    let start_tls = match config.nats.tls {
        _ if name != ListenerName::plain(Service::Messages(ProtocolName::Nats)) => StartTls::No,
        NatsTls::None => StartTls::No,
        NatsTls::Offered => StartTls::Offered,
        NatsTls::Demanded => StartTls::Demanded,
    };
    ListenerKind { name, start_tls, accepts_plaintext: config.broker.accept_plaintext.contains(&name) }
}
