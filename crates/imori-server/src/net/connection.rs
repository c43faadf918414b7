//! A connection's task on its cell's runtime: runs the turns of a socket and a timer.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use imori_core::certificate::Certificate;
use imori_core::id::ConnectionId;
use imori_core::outbound::{Mute, Outbound};
use imori_core::time::Time;
use imori_core::turn::{ClientFacts, Peer, StartTls};
use imori_core::world::{Counter, World};
use tokio::net::TcpStream;
use tokio::time::Sleep;
use tracing::{debug, error, warn};

use crate::cell::Cell;
use crate::config::{ProtocolName, Spoken};
use crate::net::preface::Preface;
use crate::net::socket::{Socket, SocketTurn, come_back_after_others};
use crate::net::stage::{Chose, Handshake, ProxyHeader, Stage, poll_start_tls};
use crate::peers::client::{Client, Traffic};
use crate::peers::proxy::{NotAHeader, Proxied};
use crate::peers::stranger::FirstBytes;
use crate::protocols::Protocol;
use crate::shared::{Accepted, ListenerKind, TcpWire, Writer};
use crate::tls::{ByteStream, Established, HandshakeError, TlsHandshake};
use crate::turn::{Link, Signal, Signals, Task, Transport as _, flush};
use crate::websocket::{Opened, WebSocketStream, open};

/// Starts to serve an accepted connection on this cell.
pub(crate) fn serve(accepted: Accepted) {
    let Accepted { stream, listener, ticket } = accepted;
    Cell::current(|cell| match Served::new(cell, stream, listener, ticket.number()) {
        Ok(Some(mut served)) => {
            let id = served.ids.id;
            cell.shared.admission.seat(&ticket, id);
            debug!(?listener, cid = served.ids.number, "connection accepted");
            served.socket.ticket = Some(ticket);
            tokio::spawn(async move { poll_fn(|cx| served.poll(cx)).await });
        }
        Ok(None) => {
            warn!("connection refused: every slot of this cell is taken");
            cell.shared.admission.leave(&ticket);
        }
        Err(error) => {
            debug!(%error, "connection ended before it began");
            cell.shared.admission.leave(&ticket);
        }
    });
}

/// A connection being served.
struct Served {
    ids: Ids,
    listener: ListenerKind,
    stage: Stage,
    socket: Socket,
    traffic: Arc<Traffic>,
    has_waker: bool,
    /// The transport is finished and its resources are released.
    is_over: bool,
    /// Whether a turn is in progress, or ended in a panic.
    is_in_turn: bool,
}

/// Identity of a connection.
struct Ids {
    id: ConnectionId,
    number: u64,
    since: Time,
    source: SocketAddr,
    signals: Arc<Signals>,
}

impl Served {
    fn new(
        cell: &Cell,
        stream: std::net::TcpStream,
        listener: ListenerKind,
        number: u64,
    ) -> io::Result<Option<Served>> {
        let stream = TcpStream::from_std(stream)?;
        let (source, local) = (stream.peer_addr()?, stream.local_addr()?);
        let (reader, writer) = stream.into_split();
        let writer = Arc::new(writer);
        let signals = Arc::new(Signals::default());
        let settings = cell.settings();
        let traffic = Arc::new(Traffic::default());
        cell.begin_turn();
        let since = cell.now();
        let Some(handle) = cell.shared.cell(cell.id) else {
            return Ok(None);
        };
        let key = handle.connections.insert(|key| {
            let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
            // Nothing may be sent before the protocol is known.
            let outbound = Outbound::new(id, Box::new(Mute), settings.outbound, cell.gauge().clone());
            let client = Client {
                number,
                protocol: None,
                source,
                local,
                since,
                facts: ClientFacts::default(),
                written_at: since,
                traffic: Arc::clone(&traffic),
            };
            let writer = Writer::Stream(ByteStream::Plain(Arc::clone(&writer)));
            let wire = TcpWire { writer, policy: settings.config.cells.write, waker: None, client };
            Link::new(outbound, wire, Arc::clone(&signals))
        });
        let Some(key) = key else {
            return Ok(None);
        };
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let socket = Socket {
            reader,
            writer,
            tls: None,
            is_proxied_tls: false,
            source,
            websocket: None,
            ticket: None,
            timer: None,
            timer_at: None,
            gone: None,
            bytes_read: 0,
            has_logged_in: false,
            listener: listener.name,
            first: FirstBytes::default(),
        };
        let ids = Ids { id, number, since, source, signals };
        let stage = Stage::Accepted;
        let mut served = Served {
            ids,
            listener,
            stage,
            socket,
            traffic,
            has_waker: false,
            is_over: false,
            is_in_turn: false,
        };
        let is_proxy = settings.config.broker.proxy_from.iter().any(|network| network.contains(source.ip()));
        served.stage = match is_proxy {
            true => Stage::Proxied(ProxyHeader::new(
                served.until(cell, settings.config.limits.login_timeout_s.duration()),
            )),
            false => served.first_stage(cell)?,
        };
        Ok(Some(served))
    }

    /// The first stage after the PROXY header, if any.
    fn first_stage(&mut self, cell: &Cell) -> io::Result<Stage> {
        if self.listener.name.is_tls { self.handshake(cell) } else { Ok(self.begin(cell, None)) }
    }

    /// Continues after a PROXY header, or ends the connection if there is none.
    fn proxied(&mut self, cell: &Cell, header: Option<Result<Proxied, NotAHeader>>) -> Option<Stage> {
        let Ok(Proxied { source, is_encrypted }) = header? else {
            let text = "`broker.proxy_from` names its network, and it does not begin with PROXY protocol 2";
            self.socket.log_refusal(cell, "no PROXY header", text);
            return None;
        };
        self.socket.is_proxied_tls = is_encrypted;
        if let Some(source) = source {
            let ticket = self.socket.ticket.as_ref()?;
            if !cell.shared.admission.moved(ticket, source.ip().to_canonical()) {
                debug!(%source, "connection refused: too many of this source have not logged in");
                return None;
            }
            (self.ids.source, self.socket.source) = (source, source);
            cell.shared.with_link(self.ids.id, |link| link.wire.client.source = source);
        }
        self.first_stage(cell).ok()
    }

    /// The first stage after TLS, or without TLS.
    fn begin(&self, cell: &Cell, certificate: Option<Certificate>) -> Stage {
        let Some(protocol) = self.listener.protocol() else {
            let policy = Arc::clone(&cell.settings().upgrade_policy);
            return Stage::Opening(certificate, Box::pin(open(self.socket.stream(), policy)));
        };
        match (self.begin_protocol(cell, protocol, certificate), self.listener.start_tls) {
            (Stage::Speaking(task), StartTls::Offered | StartTls::Demanded) if self.socket.tls.is_none() => {
                let until = self.until(cell, cell.settings().config.limits.login_timeout_s.duration());
                Stage::StartTls(task, until)
            }
            (stage, _) => stage,
        }
    }

    /// The first stage after everything below the protocol.
    fn begin_protocol(&self, cell: &Cell, protocol: ProtocolName, certificate: Option<Certificate>) -> Stage {
        match Spoken::of(protocol) {
            Some(spoken) => Stage::Speaking(self.task(cell, spoken, certificate, b"")),
            None => Stage::Preface(certificate, Preface::new(self.login_until(cell))),
        }
    }

    /// Starts a TLS handshake; everything sent and received from here on is inside TLS.
    fn handshake(&mut self, cell: &Cell) -> io::Result<Stage> {
        let settings = cell.settings();
        let acceptor = settings.tls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let (socket, source) = (Arc::clone(&self.socket.writer), self.ids.source.ip().to_canonical());
        let tls = TlsHandshake::new(acceptor, socket, source).map_err(io::Error::other)?;
        let until = self.until(cell, cell.settings().config.tls.handshake_timeout_s.duration());
        Ok(Stage::Handshake(Handshake { tls: Box::new(tls), until, greeted: None }))
    }

    /// A timer of length `time` that ends no later than the login timeout.
    fn until(&self, cell: &Cell, time: Duration) -> Pin<Box<Sleep>> {
        let end = cell.now().after(time).min(self.login_until(cell));
        Box::pin(tokio::time::sleep_until(cell.shared.clock.instant(end).into()))
    }

    /// The end of the login timeout.
    fn login_until(&self, cell: &Cell) -> Time {
        self.ids.since.after(cell.settings().config.limits.login_timeout_s.duration())
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Cell::current(|cell| {
            self.is_in_turn = true;
            let poll = self.turn(cell, cx);
            self.is_in_turn = false;
            cell.end_turn();
            poll
        })
        .unwrap_or(Poll::Ready(()))
    }

    fn turn(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<()> {
        cell.begin_turn();
        let id = self.ids.id;
        if !self.has_waker {
            self.has_waker = true;
            cell.shared.with_link(id, |link| link.wire.waker = Some(cx.waker().clone()));
        }
        if !self.is_over {
            ready!(self.transport_turn(cell, cx));
            self.is_over = true;
        }
        let Stage::Speaking(task) = &mut self.stage else {
            return Poll::Ready(());
        };
        if task.end(cell) {
            return Poll::Ready(());
        }
        come_back_after_others(cx);
        Poll::Pending
    }

    fn transport_turn(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<()> {
        let id = self.ids.id;
        if !matches!(self.stage, Stage::Speaking(_)) {
            let goes_on = !self.ids.signals.has_end() && ready!(self.poll_stages(cell, cx));
            if !goes_on {
                // Its WebSocket or TLS session is open, and is closed properly.
                if matches!(self.stage, Stage::Preface(..)) {
                    SocketTurn { id, socket: &mut self.socket, cell, cx }.close();
                }
                return Poll::Ready(());
            }
        }
        if let Some(session) = &self.socket.tls {
            // The next read reports the error too.
            let _ = session.poll_flush(cx);
        }
        let Stage::Speaking(task) = &mut self.stage else {
            return Poll::Ready(());
        };
        // Everything published during this turn comes from this client.
        let published = cell.published();
        let poll = task.poll(cell, &mut SocketTurn { id, socket: &mut self.socket, cell, cx });
        let bytes = mem::take(&mut self.socket.bytes_read);
        self.traffic.count(cell.published() - published, bytes, cell.now());
        self.traffic.note_wait(task.waits_for());
        if mem::take(&mut self.socket.has_logged_in) {
            let facts = task.client();
            cell.shared.with_link(id, |link| link.wire.client.facts = facts);
        }
        poll
    }

    /// Advances the stages until the connection speaks its protocol; false if it ends before.
    fn poll_stages(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            let next = match &mut self.stage {
                Stage::Accepted => None,
                Stage::Speaking(_) => return Poll::Ready(true),
                Stage::Proxied(header) => {
                    let header = ready!(header.poll(&mut self.socket.reader, cx));
                    self.proxied(cell, header)
                }
                Stage::StartTls(_, until) => {
                    // The whole greeting is written before TLS.
                    flush(cell, self.ids.id);
                    while self.ids.signals.take(Signal::Write) {
                        if ready!(self.socket.stream().poll_writable(cx)).is_err() {
                            return Poll::Ready(false);
                        }
                        flush(cell, self.ids.id);
                    }
                    let chose = ready!(poll_start_tls(&mut self.socket.reader, until.as_mut(), cx));
                    self.start_tls_chosen(cell, chose)
                }
                Stage::Handshake(handshake) => {
                    let outcome = ready!(handshake.poll(&cell.shared.handshakers, &mut self.socket, cx));
                    self.shaken(cell, outcome)
                }
                Stage::Opening(_, opening) => {
                    let opened = ready!(opening.as_mut().poll(cx));
                    self.opened(cell, opened)
                }
                Stage::Preface(_, preface) => {
                    let mut turn = SocketTurn { id: self.ids.id, socket: &mut self.socket, cell, cx };
                    if turn.poll_timer(Some(preface.until)).is_ready() {
                        return Poll::Ready(false);
                    }
                    let version = ready!(preface.poll(|room| turn.poll_read(room)));
                    self.version_chosen(cell, version)
                }
            };
            match next {
                Some(next) => self.stage = next,
                None => return Poll::Ready(false),
            }
        }
    }

    /// Continues with what a greeted client has chosen: TLS or not.
    fn start_tls_chosen(&mut self, cell: &Cell, chose: Chose) -> Option<Stage> {
        let stage = mem::replace(&mut self.stage, Stage::Accepted);
        let Stage::StartTls(task, until) = stage else { return None };
        match chose {
            Chose::Tls => {
                let mut stage = self.handshake(cell).ok()?;
                if let Stage::Handshake(handshake) = &mut stage {
                    handshake.greeted = Some(task);
                }
                Some(stage)
            }
            Chose::Plain if self.listener.start_tls == StartTls::Offered => Some(Stage::Speaking(task)),
            Chose::Plain => {
                let text =
                    "the client does not begin TLS, which `nats.tls` demands; give it the CA of the broker";
                self.socket.log_refusal(cell, "TLS is demanded", text);
                self.stage = Stage::StartTls(task, until);
                None
            }
            Chose::Nothing => {
                self.stage = Stage::StartTls(task, until);
                None
            }
        }
    }

    /// Continues after a handshake; returns the next stage if it succeeded.
    fn shaken(&mut self, cell: &Cell, outcome: Result<Established, HandshakeError>) -> Option<Stage> {
        let stage = mem::replace(&mut self.stage, Stage::Accepted);
        let Stage::Handshake(Handshake { greeted, .. }) = stage else { return None };
        let (session, certificate) = match outcome {
            Ok(established) => established,
            Err(error) => {
                if let Some(text) = error.text() {
                    self.socket.log_refusal(cell, "TLS handshake failed", &text);
                }
                if let Some(task) = greeted {
                    self.stage = Stage::Speaking(task);
                }
                return None;
            }
        };
        self.socket.first = FirstBytes::default();
        self.socket.tls = Some(Arc::clone(&session));
        cell.shared.with_link(self.ids.id, |link| {
            link.wire.writer = Writer::Stream(ByteStream::Tls(session));
        });
        Some(match greeted {
            Some(mut task) => {
                task.secured(certificate.map(Arc::new));
                Stage::Speaking(task)
            }
            None => self.begin(cell, certificate),
        })
    }

    /// Continues after the request for a WebSocket; returns the next stage if it was granted.
    fn opened(&mut self, cell: &Cell, opened: Opened) -> Option<Stage> {
        let (protocol, early) = match opened {
            Opened::Upgraded { protocol, early } => (protocol, early),
            Opened::Refused { reason, first } => {
                self.socket.first = first;
                self.socket.log_refusal(cell, "upgrade to WebSocket was refused", reason);
                return None;
            }
            Opened::Gone => return None,
        };
        let certificate = match &mut self.stage {
            Stage::Opening(certificate, _) => certificate.take(),
            _ => None,
        };
        let settings = cell.settings();
        let knows_text = protocol == ProtocolName::Stomp;
        let stream = self.socket.stream();
        let websocket =
            WebSocketStream::new(stream, early, settings.upgrade_policy.message_bytes_max, knows_text);
        cell.shared.with_link(self.ids.id, |link| {
            link.wire.writer = Writer::Framed(Arc::clone(websocket.writer()));
        });
        self.socket.websocket = Some(Box::new(websocket));
        debug!(%protocol, cid = self.ids.number, "connection upgraded to WebSocket");
        Some(self.begin_protocol(cell, protocol, certificate))
    }

    /// Continues after the preface of an AMQP client; returns the next stage if the client chose a version.
    fn version_chosen(&mut self, cell: &Cell, version: Option<Spoken>) -> Option<Stage> {
        let version = version?;
        let stage = mem::replace(&mut self.stage, Stage::Accepted);
        let Stage::Preface(certificate, preface) = stage else { return None };
        Some(Stage::Speaking(self.task(cell, version, certificate, preface.bytes())))
    }

    /// Creates the task of a connection whose protocol is known and of which the bytes `first` were read. Its login
    /// timeout started when it was accepted.
    fn task(&self, cell: &Cell, spoken: Spoken, certificate: Option<Certificate>, first: &[u8]) -> Task {
        let ids = &self.ids;
        let is_loopback = cell.settings().config.insecure_dev || is_loopback(ids.source.ip());
        let is_encrypted = self.socket.tls.is_some() || self.socket.is_proxied_tls;
        let is_start_tls_heard = self.socket.tls.is_none() && self.listener.protocol().is_some();
        let peer = Peer {
            is_encrypted,
            certificate: certificate.map(Arc::new),
            start_tls: if is_start_tls_heard { self.listener.start_tls } else { StartTls::No },
            may_send_password: is_encrypted || is_loopback || self.listener.accepts_plaintext,
            ..Peer::plain(ids.number, is_loopback, ids.source.to_string())
        };
        let settings = cell.settings();
        cell.shared.with_link(ids.id, |link| {
            link.outbound.set_encoder(Protocol::encoder(spoken, &settings.protocols));
            link.wire.client.protocol = Some(spoken);
        });
        let protocol = Protocol::new(spoken, &settings.protocols, ids.id, peer, ids.since);
        Task::new(cell, ids.id, Arc::clone(&ids.signals), protocol, first)
    }
}

impl Drop for Served {
    /// Releases the connection's resources, however it ended.
    fn drop(&mut self) {
        Cell::current(|cell| {
            if self.is_in_turn {
                cell.count(Counter::Fault);
                error!(source = %self.ids.source, cid = self.ids.number, "a fault ended a connection; see the panic before");
            }
            if let Some(task) = self.stage.task() {
                while !task.end(cell) {}
            }
            cell.remove_connection(self.ids.id);
            self.socket.ticket.iter().for_each(|ticket| cell.shared.admission.leave(ticket));
        });
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
