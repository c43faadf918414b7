//! The connection of an internal client on its cell: runs the turns of its pipe, and a timer.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use imori_core::authorize::{Actor, Identity};
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::inbound::Accept as _;
use imori_core::internal::{Connection, Settings};
use imori_core::outbound::Outbound;
use imori_core::time::Time;
use imori_core::turn::{Notice, Peer};
use imori_core::world::{Counter, World as _};
use tokio::time::Sleep;
use tracing::{debug, error};

use super::error::InternalError;
use crate::cell::Cell;
use crate::cell_state::internal_counts::Owner;
use crate::limits::INTERNAL_PARKED_BYTES_MAX;
use crate::net::socket::come_back_after_others;
use crate::peers::client::{Client as PeerClient, Traffic};
use crate::pipe::ClientPipe;
use crate::protocols::header_reader;
use crate::shared::{TcpWire, Writer};
use crate::turn::{Link, Signals, Task, Transport};

/// The purpose of a connection.
pub(super) struct Origin {
    pub(super) identity: Identity,
    pub(super) vhost: VhostId,
    pub(super) name: String,
    pub(super) owner: Owner,
    /// Whether it counts toward the connection limits of its user and vhost.
    pub(super) is_counted: bool,
}

/// Starts the connection of an internal client on this thread's cell.
pub(super) fn start(cell: &Cell, origin: Origin) -> Result<Arc<ClientPipe>, InternalError> {
    let Origin { identity, vhost, name, owner, is_counted } = origin;
    let handle = cell.shared.cell(cell.id).ok_or(InternalError::NoCell(cell.id))?;
    let places = handle.internal_clients.of(owner);
    if places.fetch_add(1, Ordering::Relaxed) >= owner.clients_max() {
        places.fetch_sub(1, Ordering::Relaxed);
        return Err(InternalError::TooMany);
    }
    let pipe = Arc::new(ClientPipe::new(identity.clone()));
    let settings = Arc::new(Settings {
        pipe: Arc::clone(&pipe),
        identity: identity.clone(),
        vhost,
        name,
        header_readers: header_reader,
        parked_bytes_max: INTERNAL_PARKED_BYTES_MAX,
    });
    cell.begin_turn();
    let (signals, traffic) = (Arc::new(Signals::default()), Arc::new(Traffic::default()));
    let key = handle.connections.insert(|key| {
        let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
        let encoder = Connection::encoder(&settings);
        let outbound = Outbound::new(id, encoder, cell.settings().outbound, cell.gauge().clone());
        let client = PeerClient::internal(cell.now(), vhost, Arc::clone(&traffic));
        let policy = cell.settings().config.cells.write;
        let wire = TcpWire { writer: Writer::Internal(Arc::clone(&pipe)), policy, waker: None, client };
        Link::new(outbound, wire, Arc::clone(&signals))
    });
    let Some(key) = key else {
        places.fetch_sub(1, Ordering::Relaxed);
        return Err(InternalError::TooMany);
    };
    let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
    if is_counted
        && let Err(reached) = cell.shared.enter(&Actor { identity: &identity, connection: id, vhost })
    {
        places.fetch_sub(1, Ordering::Relaxed);
        cell.remove_connection(id);
        return Err(BrokerError::from(reached).into());
    }
    let connection = Connection::new(settings, id, Peer::plain(0, true, String::new()), cell.now());
    let task = Task::new(cell, id, signals, connection, &[]);
    let facts = task.client();
    cell.shared.with_link(id, |link| link.wire.client.facts = facts);
    let (late, timer) = (Timer::default(), Timer::default());
    let mut served = Served {
        id,
        task,
        pipe: Arc::clone(&pipe),
        owner,
        traffic,
        late,
        timer,
        has_waker: false,
        is_over: false,
        is_in_turn: false,
    };
    tokio::spawn(async move { poll_fn(|cx| served.poll(cx)).await });
    Ok(pipe)
}

/// A running connection.
struct Served {
    id: ConnectionId,
    task: Task<Connection<ClientPipe>>,
    pipe: Arc<ClientPipe>,
    owner: Owner,
    traffic: Arc<Traffic>,
    /// Fires when the next call misses its deadline.
    late: Timer,
    timer: Timer,
    has_waker: bool,
    /// The transport has ended, and the client's resources are being released.
    is_over: bool,
    /// Whether a turn is running, or ended in a panic.
    is_in_turn: bool,
}

impl Served {
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
            self.pipe.set_waker(cx.waker());
            cell.shared.with_link(self.id, |link| link.wire.waker = Some(cx.waker().clone()));
        }
        loop {
            let deadline = self.pipe.fail_late_calls(cell.now());
            if self.late.poll(cell, deadline, cx).is_pending() {
                break;
            }
            cell.begin_turn();
        }
        if !self.is_over {
            let published = cell.published();
            let transport = &mut PipeTurn { pipe: &self.pipe, timer: &mut self.timer, cell, cx, read: 0 };
            let poll = self.task.poll(cell, transport);
            self.traffic.count(cell.published() - published, transport.read, cell.now());
            ready!(poll);
            self.is_over = true;
            self.pipe.end();
        }
        if self.task.end(cell) {
            return Poll::Ready(());
        }
        come_back_after_others(cx);
        Poll::Pending
    }
}

impl Drop for Served {
    /// Releases the client's resources, also after a panic.
    fn drop(&mut self) {
        self.pipe.end();
        Cell::current(|cell| {
            if self.is_in_turn {
                cell.count(Counter::Fault);
                error!(connection = ?self.id, "a fault ended an internal client; see the panic before");
            }
            while !self.task.end(cell) {}
            if let Some(handle) = cell.shared.cell(cell.id) {
                handle.internal_clients.of(self.owner).fetch_sub(1, Ordering::Relaxed);
            }
            cell.remove_connection(self.id);
        });
    }
}

/// A timer that can be moved to another time.
#[derive(Default)]
struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
    at: Option<Time>,
}

impl Timer {
    /// Ready once the clock reaches `at`; never if `at` is `None`.
    fn poll(&mut self, cell: &Cell, at: Option<Time>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(time) = at else {
            *self = Timer::default();
            return Poll::Pending;
        };
        if self.at != at {
            let instant = cell.shared.clock.instant(time).into();
            match &mut self.sleep {
                Some(sleep) => sleep.as_mut().reset(instant),
                None => self.sleep = Some(Box::pin(tokio::time::sleep_until(instant))),
            }
            self.at = at;
        }
        let Some(sleep) = &mut self.sleep else { return Poll::Pending };
        ready!(sleep.as_mut().poll(cx));
        self.at = None;
        Poll::Ready(())
    }
}

/// The pipe as the transport of one turn.
struct PipeTurn<'a, 'w> {
    pipe: &'a ClientPipe,
    timer: &'a mut Timer,
    cell: &'a Cell,
    cx: &'a mut Context<'w>,
    /// Commands announced to the task in this turn.
    read: u64,
}

impl Transport for PipeTurn<'_, '_> {
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize> {
        let read = ready!(self.pipe.poll_read(room.len()));
        self.read += read as u64;
        Poll::Ready(read)
    }

    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize> {
        let read = ready!(self.pipe.poll_read(buffer.capacity() - buffer.len()));
        buffer.resize(buffer.len() + read, 0);
        self.read += read as u64;
        Poll::Ready(read)
    }

    fn poll_writable(&mut self) -> Poll<bool> {
        self.pipe.poll_writable()
    }

    fn poll_gone(&mut self) -> Poll<()> {
        self.pipe.poll_gone()
    }

    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()> {
        ready!(self.timer.poll(self.cell, at, self.cx));
        self.cell.begin_turn();
        Poll::Ready(())
    }

    fn come_back(&mut self) {
        come_back_after_others(self.cx);
    }

    fn close(&mut self) {
        self.pipe.close();
    }

    fn logged_in(&mut self) {}

    fn noticed(&mut self, notice: &Notice) {
        debug!(reason = notice.message, text = %notice.text, "an internal client was refused");
    }
}
