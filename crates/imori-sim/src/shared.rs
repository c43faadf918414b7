//! What all cells of a run share, and the run's own means: chance, trace, locks, network.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use imori_core::id::{ConnectionId, QueueId};
use imori_core::memory::Gauge;
use imori_core::outbound::{Outbound, OutboundLimits};
use imori_core::queue::Queue;
use imori_core::route::Table;
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_stomp::settings::Settings;

use crate::lock::{Lock, Locks};
use crate::network::Network;
use crate::planted::Bug;
use crate::property::{Property, Violation};
use crate::random::Random;
use crate::resting::{Signals, Task};
use crate::slots::Slots;
use crate::trace::Trace;

/// A connection as every cell can reach it.
pub(crate) struct Link {
    pub(crate) outbound: Outbound,
    /// The transport, which is the session's number too.
    pub(crate) pipe: usize,
    pub(crate) signals: Rc<Signals>,
}

/// What a cell is doing, for the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// It goes on when it has work.
    Idle,
    /// It can go on.
    Ready,
    /// It waits for a lock.
    Waiting(Lock),
    /// It met a violation and never goes on.
    Failed,
}

/// One virtual cell.
pub(crate) struct CellState {
    pub(crate) status: Cell<Status>,
    pub(crate) links: Slots<Link>,
    /// The tasks of its connections; one that has its turn is taken out.
    pub(crate) tasks: RefCell<Vec<Task>>,
    /// Transports for it to take over.
    pub(crate) arrivals: RefCell<VecDeque<usize>>,
    pub(crate) touched: RefCell<Vec<ConnectionId>>,
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(Time, QueueId)>>>,
}

impl Default for CellState {
    fn default() -> CellState {
        CellState {
            status: Cell::new(Status::Idle),
            links: Slots::default(),
            tasks: RefCell::default(),
            arrivals: RefCell::default(),
            touched: RefCell::default(),
            timers: RefCell::default(),
        }
    }
}

/// What all cells share.
pub(crate) struct Shared {
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) bug: Option<Bug>,
    pub(crate) clock: Cell<Time>,
    /// How many decisions were made: the order of all events.
    pub(crate) step: Cell<u64>,
    pub(crate) locks: Locks,
    pub(crate) network: Network,
    pub(crate) cells: Vec<CellState>,
    pub(crate) topology: RefCell<Topology>,
    pub(crate) table: RefCell<Arc<Table>>,
    pub(crate) queues: Slots<Queue>,
    pub(crate) stomp: Arc<Settings>,
    pub(crate) outbound: OutboundLimits,
    pub(crate) memory: Memory,
    /// How likely a cell is to go on at a lock rather than to let others go first, of 8.
    pub(crate) haste: usize,
    pub(crate) read_bytes: usize,
    /// Where the broker cut a session, and at which step.
    pub(crate) cuts: RefCell<Vec<(usize, u64)>>,
    /// When all was still: what was accepted before had been written to everybody who reads.
    pub(crate) rests: RefCell<Vec<u64>>,
    pub(crate) violation: RefCell<Option<Violation>>,
}

/// The memory of what waits, and the alarm, as in the server.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) gauge: Gauge,
    pub(crate) mark_bytes: usize,
    pub(crate) is_alarmed: Cell<bool>,
    pub(crate) parked: RefCell<Vec<ConnectionId>>,
}

impl Memory {
    /// Raises or ends the alarm; gives the connections that waited for its end.
    pub(crate) fn check(&self) -> Vec<ConnectionId> {
        let bytes = self.gauge.bytes();
        if !self.is_alarmed.get() {
            self.is_alarmed.set(bytes > self.mark_bytes);
            return Vec::new();
        }
        if bytes > self.mark_bytes / 10 * 9 {
            return Vec::new();
        }
        self.is_alarmed.set(false);
        self.parked.take()
    }

    /// Notes that a connection waits for the end of the alarm; false where that has come already.
    pub(crate) fn park(&self, connection: ConnectionId) -> bool {
        if self.is_alarmed.get() {
            self.parked.borrow_mut().push(connection);
        }
        self.is_alarmed.get()
    }
}

impl Shared {
    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub(crate) fn cell(&self, cell: usize) -> &CellState {
        self.cells.get(cell).expect("cells are numbered from 0")
    }

    /// Notes that a property is broken; the first to be noted is what the run is about.
    pub(crate) fn violate(&self, property: Property, text: impl FnOnce() -> String) {
        let mut violation = self.violation.borrow_mut();
        if violation.is_none() {
            let text = text();
            self.trace.note(&[property as u64], || format!("VIOLATION {property:?}: {text}"));
            *violation = Some(Violation { property, text });
        }
    }

    pub(crate) fn is_violated(&self) -> bool {
        self.violation.borrow().is_some()
    }
}
