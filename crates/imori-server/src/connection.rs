//! A connection's task on its cell's runtime: its turns run on a socket and a timer, and whoever waits is woken.

use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use imori_core::id::ConnectionId;
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::{ClientFacts, Peer};
use imori_core::world::{Event, World};
use tokio::io::{AsyncRead, AsyncReadExt, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Sleep;
use tracing::{debug, error, warn};

use crate::admission::Ticket;
use crate::cell::Cell;
use crate::client::{Client, Traffic};
use crate::config::ProtocolName;
use crate::protocol::Protocol;
use crate::shared::{Arrival, TcpWire};
use crate::turn::{Link, Signals, Task, Transport};

/// Takes a connection over and serves it on this cell.
pub(crate) fn serve(arrival: Arrival) {
    let Arrival { stream, protocol, ticket } = arrival;
    Cell::current(|cell| match Served::new(cell, stream, protocol, ticket.number()) {
        Ok(Some(mut served)) => {
            let id = served.task.id();
            cell.shared.admission.seat(&ticket, id);
            debug!(%protocol, connection = ?id, "connection accepted");
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
    task: Task,
    socket: Socket,
    traffic: Arc<Traffic>,
    has_waker: bool,
    /// Its transport is of no more use, and what it had is given back.
    is_over: bool,
    /// It is in a turn, which has not ended or ended in a panic.
    is_in_turn: bool,
}

impl Served {
    fn new(
        cell: &Cell,
        stream: std::net::TcpStream,
        name: ProtocolName,
        number: u64,
    ) -> io::Result<Option<Served>> {
        let stream = TcpStream::from_std(stream)?;
        let source = stream.peer_addr()?;
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
        let key = handle.connections.insert(|key| {
            let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
            let encoder = Protocol::encoder(name, &settings.protocols);
            let outbound = Outbound::new(id, encoder, settings.outbound, cell.gauge().clone());
            let client = Client {
                number,
                protocol: name,
                source,
                since,
                facts: ClientFacts::default(),
                written_at: since,
                traffic: Arc::clone(&traffic),
            };
            let wire = TcpWire { writer: Arc::clone(&writer), policy: settings.write, waker: None, client };
            Link::new(outbound, wire, Arc::clone(&signals))
        });
        let Some(key) = key else {
            return Ok(None);
        };
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let peer = Peer {
            number,
            is_loopback: settings.trusts_network || is_loopback(source.ip()),
            address: source.to_string(),
        };
        let protocol = Protocol::new(name, &settings.protocols, id, peer, since);
        let socket = Socket {
            reader,
            writer,
            source,
            ticket: None,
            timer: None,
            timer_at: None,
            gone: None,
            bytes_read: 0,
            has_logged_in: false,
        };
        let task = Task::new(cell, id, signals, protocol);
        Ok(Some(Served { task, socket, traffic, has_waker: false, is_over: false, is_in_turn: false }))
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
        if !self.has_waker {
            self.has_waker = true;
            cell.shared.with_link(self.task.id(), |link| link.wire.waker = Some(cx.waker().clone()));
        }
        if !self.is_over {
            ready!(self.transport_turn(cell, cx));
            self.is_over = true;
        }
        if self.task.end(cell) {
            return Poll::Ready(());
        }
        come_back_after_others(cx);
        Poll::Pending
    }

    fn transport_turn(&mut self, cell: &Cell, cx: &mut Context<'_>) -> Poll<()> {
        // Whatever the cell takes in during the turn is of this client.
        let published = cell.published();
        let poll = self.task.poll(cell, &mut SocketTurn { socket: &mut self.socket, cell, cx });
        let bytes = mem::take(&mut self.socket.bytes_read);
        self.traffic.count(cell.published() - published, bytes, cell.now());
        if mem::take(&mut self.socket.has_logged_in) {
            let facts = self.task.client();
            cell.shared.with_link(self.task.id(), |link| link.wire.client.facts = facts);
        }
        poll
    }
}

impl Drop for Served {
    /// However it ended: what it had goes back.
    fn drop(&mut self) {
        Cell::current(|cell| {
            if self.is_in_turn {
                cell.count(Event::Fault);
                error!(source = %self.socket.source, "a fault ended a connection; see the panic before");
            }
            while !self.task.end(cell) {}
            cell.remove_connection(self.task.id());
            self.socket.ticket.iter().for_each(|ticket| cell.shared.admission.leave(ticket));
        });
    }
}

/// What carries a connection.
struct Socket {
    reader: OwnedReadHalf,
    writer: Arc<OwnedWriteHalf>,
    source: SocketAddr,
    ticket: Option<Ticket>,
    timer: Option<Pin<Box<Sleep>>>,
    timer_at: Option<Time>,
    /// Ready when the peer is gone; there is one once the connection was not read for the memory alarm.
    gone: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Bytes that this turn has read.
    bytes_read: u64,
    /// The client has logged in during this turn.
    has_logged_in: bool,
}

/// A socket during a turn.
struct SocketTurn<'a, 'w> {
    socket: &'a mut Socket,
    cell: &'a Cell,
    cx: &'a mut Context<'w>,
}

impl Transport for SocketTurn<'_, '_> {
    #[inline]
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize> {
        let mut buffer = ReadBuf::new(room);
        let read = ready!(Pin::new(&mut self.socket.reader).poll_read(self.cx, &mut buffer));
        let bytes = read.map_or(0, |()| buffer.filled().len());
        self.socket.bytes_read += bytes as u64;
        Poll::Ready(bytes)
    }

    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize> {
        let read = pin!(self.socket.reader.read_buf(buffer));
        let bytes = ready!(read.poll(self.cx)).unwrap_or(0);
        self.socket.bytes_read += bytes as u64;
        Poll::Ready(bytes)
    }

    fn poll_writable(&mut self) -> Poll<bool> {
        let stream: &TcpStream = self.socket.writer.as_ref().as_ref();
        stream.poll_write_ready(self.cx).map(|ready| ready.is_ok())
    }

    fn poll_gone(&mut self) -> Poll<()> {
        let gone = self.socket.gone.get_or_insert_with(|| Box::pin(gone(Arc::clone(&self.socket.writer))));
        gone.as_mut().poll(self.cx)
    }

    #[inline]
    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()> {
        let Socket { timer, timer_at, .. } = &mut *self.socket;
        let Some(at) = at else {
            *timer = None;
            *timer_at = None;
            return Poll::Pending;
        };
        if *timer_at != Some(at) {
            let instant = self.cell.shared.clock.instant(at).into();
            match timer {
                Some(timer) => timer.as_mut().reset(instant),
                None => *timer = Some(Box::pin(tokio::time::sleep_until(instant))),
            }
            *timer_at = Some(at);
        }
        let Some(timer) = timer else {
            return Poll::Pending;
        };
        ready!(timer.as_mut().poll(self.cx));
        *timer_at = None;
        self.cell.begin_turn();
        Poll::Ready(())
    }

    fn come_back(&mut self) {
        come_back_after_others(self.cx);
    }

    fn close(&mut self) {
        let stream: &TcpStream = self.socket.writer.as_ref().as_ref();
        // A peer that is gone already needs no goodbye.
        let _ = socket2::SockRef::from(stream).shutdown(Shutdown::Write);
    }

    fn logged_in(&mut self) {
        self.socket.has_logged_in = true;
        self.socket.ticket.iter().for_each(|ticket| self.cell.shared.admission.logged_in(ticket));
    }

    fn refused(&mut self, message: &'static str, text: &str) {
        let source = self.socket.source;
        let Some(folded) = self.cell.shared.complaints.admit(source.ip().to_canonical(), self.cell.now())
        else {
            return;
        };
        warn!(%source, message, text, folded, "client was refused");
    }
}

/// Waits until the socket meets an error: what came before stays unread.
async fn gone(writer: Arc<OwnedWriteHalf>) {
    // That it cannot be waited for means that it is gone, too.
    let _ = writer.ready(Interest::ERROR).await;
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Lets the task have another turn when the others that can go on have had one.
///
/// Its waker would not do: the runtime would go on with what is ready, and ask only after dozens of turns
/// what has come for others in the meantime.
fn come_back_after_others(cx: &mut Context<'_>) {
    let mut others_first = pin!(tokio::task::yield_now());
    // It is pending, and that is all that is wanted of it.
    let _ = others_first.as_mut().poll(cx);
}
