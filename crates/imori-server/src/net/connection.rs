//! A connection's task on its cell's runtime: its turns run on a socket and a timer, which wake it.

use std::future::poll_fn;
use std::io;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use imori_core::id::ConnectionId;
use imori_core::outbound::{Mute, Outbound};
use imori_core::time::Time;
use imori_core::turn::{ClientFacts, Peer};
use imori_core::world::{Counter, World};
use tokio::net::TcpStream;
use tracing::{debug, error, warn};

use crate::cell::Cell;
use crate::config::ProtocolName;
use crate::net::socket::{Socket, SocketTurn, come_back_after_others};
use crate::peers::client::{Client, Traffic};
use crate::peers::stranger::FirstBytes;
use crate::protocol::Protocol;
use crate::shared::{Accepted, ListenerKind, TcpWire, Writer};
use crate::turn::{Link, Signals, Task};
use crate::websocket::{Opened, Opening, WebSocketStream, open};

/// Takes a connection over and serves it on this cell.
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

/// A connection that is served.
struct Served {
    ids: Ids,
    stage: Stage,
    socket: Socket,
    traffic: Arc<Traffic>,
    has_waker: bool,
    /// Its transport is of no more use, and what it had is given back.
    is_over: bool,
    /// The connection is in a turn that has not ended, or that ended in a panic.
    is_in_turn: bool,
}

/// Which connection it is.
struct Ids {
    id: ConnectionId,
    number: u64,
    since: Time,
    source: SocketAddr,
    signals: Arc<Signals>,
}

/// How far a connection has come.
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one")]
enum Stage {
    /// The WebSocket's opening handshake is under way.
    Opening(Opening),
    /// The connection speaks its protocol.
    Speaking(Task),
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
        let settings = &cell.settings;
        let traffic = Arc::new(Traffic::default());
        cell.begin_turn();
        let since = cell.now();
        let Some(handle) = cell.shared.cell(cell.id) else {
            return Ok(None);
        };
        let protocol = match listener {
            ListenerKind::Plain(protocol) => Some(protocol),
            ListenerKind::WebSocket => None,
        };
        let key = handle.connections.insert(|key| {
            let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
            let encoder = match protocol {
                Some(protocol) => Protocol::encoder(protocol, &settings.protocols),
                None => Box::new(Mute),
            };
            let outbound = Outbound::new(id, encoder, settings.outbound, cell.gauge().clone());
            let client = Client {
                number,
                protocol,
                source,
                local,
                since,
                facts: ClientFacts::default(),
                written_at: since,
                traffic: Arc::clone(&traffic),
            };
            let writer = Writer::Plain(Arc::clone(&writer));
            let wire = TcpWire { writer, policy: settings.write, waker: None, client };
            Link::new(outbound, wire, Arc::clone(&signals))
        });
        let Some(key) = key else {
            return Ok(None);
        };
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let socket = Socket {
            reader,
            writer,
            source,
            websocket: None,
            ticket: None,
            timer: None,
            timer_at: None,
            gone: None,
            bytes_read: 0,
            has_logged_in: false,
            protocol,
            first: FirstBytes::default(),
        };
        let ids = Ids { id, number, since, source, signals };
        let stage = match protocol {
            Some(protocol) => Stage::Speaking(task(cell, &ids, protocol)),
            None => Stage::Opening(Box::pin(open(
                Arc::clone(&socket.writer),
                Arc::clone(&settings.upgrade_policy),
            ))),
        };
        Ok(Some(Served { ids, stage, socket, traffic, has_waker: false, is_over: false, is_in_turn: false }))
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
        if let Stage::Opening(opening) = &mut self.stage {
            // Whoever is told anything before it has a protocol is told to go.
            if self.ids.signals.has_any() {
                return Poll::Ready(());
            }
            let opened = ready!(opening.as_mut().poll(cx));
            let Some(task) = self.opened(cell, opened) else {
                return Poll::Ready(());
            };
            self.stage = Stage::Speaking(task);
        }
        let Stage::Speaking(task) = &mut self.stage else {
            return Poll::Ready(());
        };
        // Whatever the cell takes in during the turn is of this client.
        let published = cell.published();
        let poll = task.poll(cell, &mut SocketTurn { id, socket: &mut self.socket, cell, cx });
        let bytes = mem::take(&mut self.socket.bytes_read);
        self.traffic.count(cell.published() - published, bytes, cell.now());
        if mem::take(&mut self.socket.has_logged_in) {
            let facts = task.client();
            cell.shared.with_link(id, |link| link.wire.client.facts = facts);
        }
        poll
    }

    /// A request was answered; gives the task where it was granted.
    fn opened(&mut self, cell: &Cell, opened: Opened) -> Option<Task> {
        let (protocol, early) = match opened {
            Opened::Upgraded { protocol, early } => (protocol, early),
            Opened::Refused(reason) => {
                self.socket.log_refusal(cell, "upgrade to WebSocket was refused", reason);
                return None;
            }
            Opened::Gone => return None,
        };
        let settings = &cell.settings;
        let knows_text = protocol == ProtocolName::Stomp;
        let socket = Arc::clone(&self.socket.writer);
        let websocket =
            WebSocketStream::new(socket, early, settings.upgrade_policy.message_bytes_max, knows_text);
        cell.shared.with_link(self.ids.id, |link| {
            link.outbound.set_encoder(Protocol::encoder(protocol, &settings.protocols));
            link.wire.writer = Writer::Framed(Arc::clone(websocket.writer()));
            link.wire.client.protocol = Some(protocol);
        });
        self.socket.websocket = Some(Box::new(websocket));
        debug!(%protocol, cid = self.ids.number, "connection upgraded to WebSocket");
        Some(task(cell, &self.ids, protocol))
    }
}

impl Drop for Served {
    /// However it ended: what it had goes back.
    fn drop(&mut self) {
        Cell::current(|cell| {
            if self.is_in_turn {
                cell.count(Counter::Fault);
                error!(source = %self.ids.source, cid = self.ids.number, "a fault ended a connection; see the panic before");
            }
            if let Stage::Speaking(task) = &mut self.stage {
                while !task.end(cell) {}
            }
            cell.remove_connection(self.ids.id);
            self.socket.ticket.iter().for_each(|ticket| cell.shared.admission.leave(ticket));
        });
    }
}

/// The task of a connection whose protocol is known. Its time to log in began when it was accepted.
fn task(cell: &Cell, ids: &Ids, protocol: ProtocolName) -> Task {
    let is_loopback = cell.settings.trusts_network || is_loopback(ids.source.ip());
    let peer = Peer::plain(ids.number, is_loopback, ids.source.to_string());
    let protocol = Protocol::new(protocol, &cell.settings.protocols, ids.id, peer, ids.since);
    Task::new(cell, ids.id, Arc::clone(&ids.signals), protocol)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}
