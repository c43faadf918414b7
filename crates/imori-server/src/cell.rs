//! A cell: a thread with a runtime of its own that owns connections, and the [`World`] in which the broker's
//! verbs run on it.
//!
//! What a turn of a connection has for others is appended to their outbound halves at once; those
//! are written together when the thread is about to park, or earlier where a lot has gathered.

use std::cell::{Cell as Slot, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use arc_swap::{ArcSwap, Cache};
use imori_core::broker::queue_woken;
use imori_core::id::{ConnectionId, QueueId};
use imori_core::memory::Gauge;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::outbound::Outbound;
use imori_core::queue::Queue;
use imori_core::route::{Router, Table};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::{Event, World};
use imori_stomp::frame::HeaderTable;
use tokio::sync::Notify;
use tracing::error;

use crate::limits::{
    FLUSH_AFTER, FLUSH_CONNECTIONS_MAX, READ_BYTES, SPARE_BUFFER_BYTES_MAX, SPARE_BUFFERS_MAX,
};
use crate::settings::Settings;
use crate::shared::{Shared, link_key, queue_key};
use crate::signal::Signal;
use crate::slots::{SlotKey, unpoisoned};

/// The cell of this thread.
pub(crate) struct Cell {
    pub(crate) id: u16,
    pub(crate) shared: Arc<Shared>,
    pub(crate) settings: Arc<Settings>,
    /// What a connection reads into, and where its headers are noted: used within a turn only.
    pub(crate) scratch: RefCell<Vec<u8>>,
    pub(crate) headers: RefCell<HeaderTable>,
    now: Slot<Time>,
    table: RefCell<Cache<Arc<ArcSwap<Table>>, Arc<Table>>>,
    router: RefCell<Router>,
    touched: RefCell<Vec<ConnectionId>>,
    touched_since: Slot<Time>,
    /// Emptied buffers for the next outbound halves to write into.
    spare: RefCell<Vec<Vec<u8>>>,
    timers: RefCell<BinaryHeap<Reverse<(Time, QueueId)>>>,
    timer_set: Arc<Notify>,
}

thread_local! {
    static CURRENT: OnceCell<Cell> = const { OnceCell::new() };
}

impl Cell {
    /// Lends the cell of this thread; `None` on a thread that has none.
    pub(crate) fn current<R>(f: impl FnOnce(&Cell) -> R) -> Option<R> {
        CURRENT.with(|current| current.get().map(f))
    }

    /// Makes the cell of this thread.
    pub(crate) fn start(id: u16, shared: Arc<Shared>, settings: Arc<Settings>) {
        CURRENT.with(|current| {
            current.get_or_init(|| Cell::new(id, shared, settings));
        });
    }

    fn new(id: u16, shared: Arc<Shared>, settings: Arc<Settings>) -> Cell {
        let table = Cache::new(Arc::clone(&shared.table));
        Cell {
            id,
            settings,
            scratch: RefCell::new(vec![0; 2 * READ_BYTES]),
            headers: RefCell::new(HeaderTable::default()),
            now: Slot::new(shared.clock.now()),
            table: RefCell::new(table),
            router: RefCell::new(Router::default()),
            touched: RefCell::new(Vec::new()),
            touched_since: Slot::new(Time::default()),
            spare: RefCell::new(Vec::new()),
            timers: RefCell::new(BinaryHeap::new()),
            timer_set: Arc::new(Notify::new()),
            shared,
        }
    }

    /// A connection begins a turn: from here on it is now.
    pub(crate) fn begin_turn(&self) {
        self.now.set(self.shared.clock.now());
    }

    /// A connection ends its turn: writes what was gathered, if that is a lot or old.
    pub(crate) fn end_turn(&self) {
        self.check_memory();
        let touched = self.touched.borrow().len();
        if touched == 0 {
            return;
        }
        let waited = self.shared.clock.now().since(self.touched_since.get());
        if touched >= FLUSH_CONNECTIONS_MAX || waited >= FLUSH_AFTER {
            self.flush_touched();
        }
    }

    /// The thread is about to park.
    pub(crate) fn park(&self) {
        self.begin_turn();
        self.flush_touched();
        self.check_memory();
        if let Some(handle) = self.shared.cell(self.id) {
            handle.load.park();
        }
    }

    fn check_memory(&self) {
        for connection in self.shared.memory.check() {
            self.shared.signal(connection, Signal::AlarmEnded);
        }
    }

    pub(crate) fn note_touched(&self, id: ConnectionId) {
        let mut touched = self.touched.borrow_mut();
        if touched.is_empty() {
            self.touched_since.set(self.now.get());
        }
        touched.push(id);
    }

    pub(crate) fn take_touched(&self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.touched.borrow_mut())
    }

    /// Gives back an emptied list, so that the next one needs no memory.
    pub(crate) fn recycle_touched(&self, mut list: Vec<ConnectionId>) {
        let mut touched = self.touched.borrow_mut();
        if touched.capacity() == 0 {
            list.clear();
            *touched = list;
        }
    }

    /// Keeps an empty buffer for later use.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_BUFFERS_MAX && (1..=SPARE_BUFFER_BYTES_MAX).contains(&buffer.capacity()) {
            spare.push(buffer);
        }
    }

    /// When the next queue has to be woken, and what tells of an earlier one.
    pub(crate) fn next_timer(&self) -> (Option<Time>, Arc<Notify>) {
        let next = self.timers.borrow().peek().map(|Reverse((at, _))| *at);
        (next, Arc::clone(&self.timer_set))
    }

    /// Forgets a connection of this cell.
    pub(crate) fn remove_connection(&self, id: ConnectionId) {
        let Some(handle) = self.shared.cell(self.id) else {
            return;
        };
        handle.connections.remove(link_key(id));
        if handle.connections.len() == 0 {
            handle.emptied.notify_one();
        }
    }

    /// Wakes the queues whose deadlines have passed.
    pub(crate) fn fire_timers(&self) {
        self.begin_turn();
        let now = self.now.get();
        loop {
            let due = {
                let mut timers = self.timers.borrow_mut();
                match timers.peek() {
                    Some(Reverse((at, _))) if *at <= now => timers.pop(),
                    _ => None,
                }
            };
            let Some(Reverse((_, queue))) = due else {
                return;
            };
            queue_woken(self, queue);
        }
    }
}

impl World for Cell {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        let mut secret = [0; 16];
        // Without the system's generator nothing here can be kept safe.
        getrandom::fill(&mut secret).expect("the system's random generator works");
        secret
    }

    fn is_alarmed(&self) -> bool {
        self.shared.memory.is_alarmed()
    }

    fn gauge(&self) -> &Gauge {
        &self.shared.memory.gauge
    }

    fn count_many(&self, event: Event, times: usize) {
        if let Some(handle) = self.shared.cell(self.id) {
            handle.counters.count(event, times as u64);
        }
    }

    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R {
        let mut table = self.table.borrow_mut();
        f(&mut self.router.borrow_mut(), table.load())
    }

    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R {
        let _fatal = FatalIfPanicking(&self.shared);
        let mut topology = unpoisoned(self.shared.topology.lock());
        let before = topology.table().version();
        let result = f(&mut topology);
        if topology.table().version() != before {
            self.shared.table.store(Arc::new(topology.table().clone()));
        }
        result
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        let key = self.shared.queues.insert(|_| queue)?;
        Some(QueueId { slot: key.slot, generation: key.generation })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        self.shared.queues.remove(queue_key(id))
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let _fatal = FatalIfPanicking(&self.shared);
        self.shared.queues.with(queue_key(id), f)
    }

    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R {
        let _fatal = FatalIfPanicking(&self.shared);
        let keys: Vec<SlotKey> = ids.iter().map(|id| queue_key(*id)).collect();
        self.shared.queues.with_many(&keys, f)
    }

    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R> {
        let (result, is_newly_touched) = self.shared.with_link(id, |link| {
            let outbound = &mut link.outbound;
            let is_lent = outbound.lend(|| self.spare.borrow_mut().pop());
            // A fault in what one receiver needs done must not reach the publisher, or the queue it holds.
            let Ok(result) = catch_unwind(AssertUnwindSafe(|| f(outbound))) else {
                link.signal(Signal::Broken);
                self.count(Event::Fault);
                error!(connection = ?id, "a fault ended a connection; see the panic before");
                return (None, false);
            };
            let is_ended = outbound.is_ended();
            let is_touched = match outbound.has_unsent() {
                true => outbound.touch(),
                false => {
                    if is_lent {
                        self.spare.borrow_mut().extend(outbound.reclaim());
                    }
                    false
                }
            };
            if is_ended && !link.is_ending {
                link.is_ending = true;
                link.signal(Signal::Ending);
            }
            (Some(result), is_touched)
        })?;
        if is_newly_touched {
            self.note_touched(id);
        }
        result
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        let mut timers = self.timers.borrow_mut();
        let is_first = timers.peek().is_none_or(|Reverse((first, _))| at < *first);
        timers.push(Reverse((at, id)));
        if is_first {
            self.timer_set.notify_one();
        }
    }

    fn resume(&self, publisher: ConnectionId) {
        self.shared.signal(publisher, Signal::Resume);
    }

    fn header_reader(&self, origin: OriginId) -> &dyn HeaderReader {
        imori_stomp::header_reader(origin)
    }
}

/// A panic while a queue or the topology is lent leaves the core in a state that nobody knows: the broker ends.
pub(crate) struct FatalIfPanicking<'a>(pub(crate) &'a Shared);

impl Drop for FatalIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("a fault in the broker's core; see the log for the panic");
        }
    }
}
