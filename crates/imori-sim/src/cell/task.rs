//! The server's task for a connection on a pipe of a virtual cell.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::BytesMut;
use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::id::{ConnectionId, ReaderId, VhostId};
use imori_core::inbound::Accept;
use imori_core::internal;
use imori_core::outbound::{Credit, Numbers, Outbound, SessionId};
use imori_core::time::Time;
use imori_core::turn::{Notice, Peer};
use imori_core::world::World;
use imori_server::protocols::Protocol;
use imori_server::protocols::header_reader;
use imori_server::turn::{Link, Signals, Transport};
use imori_testkit::toy;

use super::world::CellWorld;
use crate::machine::{CHANNELS_MAX, CommandPipe, PARKED_BYTES_MAX, PipeWire, Served, Spoken, Task, Waits};
use crate::planted::Bug;

impl Task {
    /// Accepts a transport.
    pub(crate) fn new(cell: &CellWorld<'_>, pipe: usize) -> Task {
        let shared = cell.shared;
        let spoken = shared.network.pipe(pipe).spoken.clone();
        let number = u16::try_from(cell.id).expect("there are few cells");
        let signals = Arc::new(Signals::default());
        let woken = Rc::new(Cell::new(true));
        let (slot, generation) = cell.state().links.insert(|slot, generation| {
            let id = ConnectionId { cell: number, slot, generation };
            let encoder = match &spoken {
                Spoken::Product(product) => Protocol::encoder(*product, &shared.protocols),
                Spoken::Toy => toy::Connection::encoder(&shared.toy),
                Spoken::Internal(commands) => internal::Connection::encoder(&internal_settings(commands)),
            };
            let mut limits = shared.outbound;
            if shared.has(Bug::NoBound) {
                limits.unsent_bytes_max *= 4;
            }
            let outbound = Outbound::new(id, encoder, limits, cell.gauge().clone());
            // Under this bug a wake-up has no effect.
            let woken = if shared.has(Bug::LostWakeUp) { Rc::default() } else { Rc::clone(&woken) };
            let wire = PipeWire { id, pipe, is_own: shared.writes_own, woken };
            Link::new(outbound, wire, Arc::clone(&signals))
        });
        let id = ConnectionId { cell: number, slot, generation };
        let peer = Peer::plain(u64::from(id.slot) + 1, true, String::from("127.0.0.1"));
        cell.begin_turn();
        let task = match spoken {
            Spoken::Product(product) => {
                let product = Protocol::new(product, &shared.protocols, id, peer, cell.now());
                Served::Product(Box::new(imori_server::turn::Task::new(cell, id, signals, product, b"")))
            }
            Spoken::Toy => {
                let toy = toy::Connection::new(Arc::clone(&shared.toy), id, peer, cell.now());
                Served::Toy(Box::new(imori_server::turn::Task::new(cell, id, signals, toy, b"")))
            }
            Spoken::Internal(commands) => {
                let settings = Arc::new(internal_settings(&commands));
                let internal = internal::Connection::new(settings, id, peer, cell.now());
                Served::Internal(Box::new(imori_server::turn::Task::new(cell, id, signals, internal, b"")))
            }
        };
        Task { task, pipe, waits: Waits::default(), woken }
    }

    /// Runs a turn; ready once the connection is over.
    pub(crate) fn turn(&mut self, cell: &CellWorld<'_>) -> Poll<()> {
        cell.begin_turn();
        self.woken.set(false);
        self.waits = Waits::default();
        let (waits, woken) = (&mut self.waits, &*self.woken);
        let mut transport = PipeTurn { cell, pipe: self.pipe, waits, woken, reads: 0 };
        cell.shared.network.pipe(self.pipe).turn_began = Some(cell.now());
        cell.turn_of.set(Some(self.task.id()));
        let turn = self.task.poll(cell, &mut transport);
        cell.turn_of.set(None);
        cell.meddle(self.task.id());
        cell.shared.network.pipe(self.pipe).turn_began = None;
        if cell.shared.has(Bug::CreditTwice) {
            let first = ReaderId { slot: 0, generation: 0 };
            cell.with_outbound(self.task.id(), |outbound| outbound.set_credit(first, Credit::window(64)));
        }
        turn
    }

    /// Ends the connection and releases what it held.
    pub(crate) fn end(&mut self, cell: &CellWorld<'_>) {
        let (shared, id) = (cell.shared, self.task.id());
        if shared.has(Bug::ForgottenUnsettled) {
            cell.with_outbound(id, |outbound| {
                let sessions = (0..=CHANNELS_MAX).map(|channel| SessionId(channel as u16));
                sessions.for_each(|session| {
                    drop(outbound.settle(session, Numbers::All, usize::MAX, Outcome::Accept));
                });
            });
        }
        shared.network.pipe(self.pipe).is_ending = true;
        cell.ending.set(Some(id));
        if !shared.has(Bug::ForgottenDisconnect) {
            while !self.task.end(cell) {
                cell.pause();
            }
        }
        cell.ending.set(None);
        {
            let _held = cell.lock(crate::machine::Lock::Outbound(id.cell, id.slot));
            let slot = cell.state().links.slot(id.slot);
            slot.and_then(|slot| slot.borrow_mut().remove(id.generation));
        }
        cell.state().links.release(id.slot);
        shared.network.pipe(self.pipe).is_over = true;
    }
}

/// The settings of an internal client that acts for the broker.
fn internal_settings(commands: &Arc<CommandPipe>) -> internal::Settings<CommandPipe> {
    internal::Settings {
        pipe: Arc::clone(commands),
        identity: Identity::broker(),
        vhost: VhostId(0),
        name: String::from("internal"),
        header_readers: header_reader,
        parked_bytes_max: PARKED_BYTES_MAX,
    }
}

/// The transport of a pipe during a turn.
struct PipeTurn<'a, 'c> {
    cell: &'a CellWorld<'c>,
    pipe: usize,
    waits: &'a mut Waits,
    woken: &'a Cell<bool>,
    /// The number of reads in this turn.
    reads: usize,
}

impl PipeTurn<'_, '_> {
    fn read(&mut self, room: &mut [u8]) -> Poll<usize> {
        let shared = self.cell.shared;
        self.cell.is_waking.set(false);
        if shared.has(Bug::DiskFullStopsReading) && shared.memory.is_disk_alarmed() {
            return Poll::Pending;
        }
        let has_more = self.reads == 0 || shared.random.chance(1, 4);
        self.reads += 1;
        let read =
            if has_more { shared.network.read(self.pipe, room, &shared.random) } else { Poll::Pending };
        match read {
            Poll::Pending => self.waits.reads = true,
            Poll::Ready(len) => {
                shared.trace.note_bytes(room.get(..len).unwrap_or_default());
                shared.trace.note(&[self.pipe as u64], || {
                    format!("cell {} reads {len} bytes of connection {}", self.cell.id, self.pipe)
                });
            }
        }
        read
    }
}

impl Transport for PipeTurn<'_, '_> {
    fn poll_read(&mut self, room: &mut [u8]) -> Poll<usize> {
        self.read(room)
    }

    fn poll_read_buf(&mut self, buffer: &mut BytesMut) -> Poll<usize> {
        let mut room = vec![0; buffer.capacity() - buffer.len()];
        let read = self.read(&mut room);
        if let Poll::Ready(len) = read {
            buffer.extend_from_slice(room.get(..len).unwrap_or_default());
        }
        read
    }

    fn poll_writable(&mut self) -> Poll<bool> {
        let shared = self.cell.shared;
        if shared.has(Bug::LostWriteSignal) {
            return Poll::Pending;
        }
        if shared.network.pipe(self.pipe).is_writable() {
            return Poll::Ready(true);
        }
        self.waits.writes = true;
        Poll::Pending
    }

    fn poll_gone(&mut self) -> Poll<()> {
        if self.cell.shared.has(Bug::UnnoticedEnd) {
            return Poll::Pending;
        }
        self.waits.for_gone = true;
        if self.cell.shared.network.pipe(self.pipe).is_reset { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_timer(&mut self, at: Option<Time>) -> Poll<()> {
        self.cell.is_waking.set(false);
        self.waits.until = at;
        Poll::Pending
    }

    fn come_back(&mut self) {
        self.woken.set(true);
    }

    fn close(&mut self) {
        self.cell.shared.network.pipe(self.pipe).server_closed = true;
    }

    fn logged_in(&mut self) {}

    fn noticed(&mut self, notice: &Notice) {
        let say = || format!("connection {} is noticed: {}: {}", self.pipe, notice.message, notice.text);
        self.cell.shared.trace.note(&[self.pipe as u64], say);
    }
}
