//! What all cells share.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;

use arc_swap::ArcSwap;
use imori_core::id::{ConnectionId, QueueId};
use imori_core::memory::Gauge;
use imori_core::outbound::Outbound;
use imori_core::queue::Queue;
use imori_core::route::Table;
use imori_core::topology::Topology;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc, watch};
use tracing::{info, warn};

use crate::admission::{Admission, Ticket};
use crate::clock::Clock;
use crate::complaints::Complaints;
use crate::config::Protocol;
use crate::counters::Counters;
use crate::load::Load;
use crate::signal::{Signal, Signals};
use crate::slots::{SlotKey, Slots, unpoisoned};

/// A connection as every cell can reach it.
pub(crate) struct Link {
    pub(crate) outbound: Outbound,
    pub(crate) writer: Writer,
    pub(crate) signals: Arc<Signals>,
    /// Its task was told that it ends.
    pub(crate) is_ending: bool,
    /// Wakes the connection's own task, once that has run.
    pub(crate) waker: Option<Waker>,
}

/// Who writes to a connection's socket.
#[derive(Clone)]
pub(crate) enum Writer {
    /// Whoever has something for it: plain TCP.
    Any(Arc<OwnedWriteHalf>),
    /// Its own cell alone, which others wake: what is not plain TCP, or if so configured.
    Own(Arc<OwnedWriteHalf>),
}

/// A connection for a cell to take over.
pub(crate) struct Arrival {
    pub(crate) stream: TcpStream,
    pub(crate) protocol: Protocol,
    pub(crate) ticket: Ticket,
}

/// A cell as the others see it.
pub(crate) struct CellHandle {
    pub(crate) connections: Slots<Link>,
    /// Connections for it to take over.
    pub(crate) arrivals: mpsc::UnboundedSender<Arrival>,
    pub(crate) load: Load,
    pub(crate) counters: Counters,
    /// Its last connection is gone.
    pub(crate) emptied: Notify,
}

impl CellHandle {
    pub(crate) fn new(connections_max: usize, arrivals: mpsc::UnboundedSender<Arrival>) -> CellHandle {
        CellHandle {
            connections: Slots::new(connections_max),
            arrivals,
            load: Load::new(),
            counters: Counters::default(),
            emptied: Notify::new(),
        }
    }
}

/// How far the broker's end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It serves.
    Serving,
    /// It takes nothing new and lets connections finish.
    Stopping,
    /// It ends now.
    Ended,
}

/// What all cells share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) table: Arc<ArcSwap<Table>>,
    pub(crate) topology: Mutex<Topology>,
    pub(crate) queues: Slots<Queue>,
    pub(crate) cells: OnceLock<Box<[CellHandle]>>,
    pub(crate) admission: Admission,
    pub(crate) complaints: Complaints,
    pub(crate) memory: Memory,
    pub(crate) phase: watch::Sender<Phase>,
    /// Why the broker had to end, if it had to.
    pub(crate) fault: Mutex<Option<String>>,
}

/// The memory of what waits, and the alarm that makes publishers wait too.
pub(crate) struct Memory {
    pub(crate) gauge: Gauge,
    mark_bytes: usize,
    is_alarmed: AtomicBool,
    /// The same, for those who wait for it to change.
    alarm: watch::Sender<bool>,
    parked: Mutex<Vec<ConnectionId>>,
}

impl Memory {
    pub(crate) fn new(mark_bytes: usize) -> Memory {
        Memory {
            gauge: Gauge::default(),
            mark_bytes,
            is_alarmed: AtomicBool::new(false),
            alarm: watch::Sender::new(false),
            parked: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn mark_bytes(&self) -> usize {
        self.mark_bytes
    }

    pub(crate) fn is_alarmed(&self) -> bool {
        self.is_alarmed.load(Ordering::Relaxed)
    }

    /// Tells of the alarm's beginning and end.
    pub(crate) fn watch(&self) -> watch::Receiver<bool> {
        self.alarm.subscribe()
    }

    /// Raises the alarm, or ends it well below the mark, and then gives the connections that waited for that.
    pub(crate) fn check(&self) -> Vec<ConnectionId> {
        let bytes = self.gauge.bytes();
        if !self.is_alarmed() {
            if bytes > self.mark_bytes && !self.is_alarmed.swap(true, Ordering::SeqCst) {
                warn!(bytes, mark_bytes = self.mark_bytes, "memory mark is reached, publishers wait");
                self.alarm.send_replace(true);
            }
            return Vec::new();
        }
        if bytes > self.mark_bytes / 10 * 9 || !self.is_alarmed.swap(false, Ordering::SeqCst) {
            return Vec::new();
        }
        self.alarm.send_replace(false);
        info!(bytes, mark_bytes = self.mark_bytes, "memory is below the mark, publishers go on");
        std::mem::take(&mut *unpoisoned(self.parked.lock()))
    }

    /// Notes that a connection waits for the end of the alarm; false where that has come already.
    pub(crate) fn park(&self, connection: ConnectionId) -> bool {
        let mut parked = unpoisoned(self.parked.lock());
        // Looked at under the lock: whoever ends the alarm takes the list after it.
        if !self.is_alarmed.load(Ordering::SeqCst) {
            return false;
        }
        parked.push(connection);
        true
    }
}

impl Shared {
    pub(crate) fn cell(&self, cell: u16) -> Option<&CellHandle> {
        self.cells.get()?.get(usize::from(cell))
    }

    /// Lends a connection under its lock, if it is there.
    pub(crate) fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Link) -> R) -> Option<R> {
        self.cell(id.cell)?.connections.with(link_key(id), f)
    }

    /// Tells a connection's task something and wakes it.
    pub(crate) fn signal(&self, id: ConnectionId, signal: Signal) {
        self.with_link(id, |link| link.signal(signal));
    }

    /// Ends the broker because of a fault in its core.
    pub(crate) fn fail(&self, why: &str) {
        unpoisoned(self.fault.lock()).get_or_insert_with(|| String::from(why));
        self.phase.send_replace(Phase::Ended);
    }
}

impl Link {
    pub(crate) fn signal(&self, signal: Signal) {
        self.signals.set(signal);
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

pub(crate) fn link_key(id: ConnectionId) -> SlotKey {
    SlotKey { slot: id.slot, generation: id.generation }
}

pub(crate) fn queue_key(id: QueueId) -> SlotKey {
    SlotKey { slot: id.slot, generation: id.generation }
}
