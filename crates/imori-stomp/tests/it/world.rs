//! The smallest world in which the core runs: one cell, no threads, a clock that is told the time.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, page_failed, queue_woken};
use imori_core::confirm::{Lsn, Progress};
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::memory::Gauge;
use imori_core::message::{HeaderReader, OriginId};
use imori_core::outbound::{Encoder, Outbound, OutboundLimits};
use imori_core::queue::{PageDraft, PageWork, Queue};
use imori_core::record::{Appended, NewRecord};
use imori_core::route::hamt::Seed;
use imori_core::route::{Router, Table, TableLimits};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::{Event, World};

/// What may be on its way to one client.
pub(crate) const OUTBOUND_LIMITS: OutboundLimits =
    OutboundLimits { feed_bytes: 1024 * 1024, unsent_bytes_max: 16 * 1024 * 1024, inboxes_max: 4 };

/// The world. Locks are cells, so that a lock taken twice is found.
pub(crate) struct TinyWorld {
    now: Cell<Time>,
    secrets: Cell<u8>,
    appended: Cell<Lsn>,
    is_alarmed: Cell<bool>,
    /// How often it can still be asked whether memory is short before it is not any more.
    alarm_left: Cell<usize>,
    gauge: Gauge,
    router: RefCell<Router>,
    table: RefCell<Table>,
    topology: RefCell<Topology>,
    tables: Cell<usize>,
    queues: RefCell<Vec<Rc<RefCell<Option<Queue>>>>>,
    outbounds: RefCell<Vec<Rc<RefCell<Option<Outbound>>>>>,
    wakes: RefCell<Vec<(Time, QueueId)>>,
    /// Bytes of memory that a queue may keep.
    share: Cell<usize>,
    /// Pages that are being written, for as long as a test wants.
    pages: RefCell<Vec<(QueueId, PageDraft)>>,
    relieved: RefCell<Vec<ConnectionId>>,
}

impl Default for TinyWorld {
    fn default() -> TinyWorld {
        let mut table = Table::new(Seed(1), TableLimits::default());
        table.add_vhost(VhostId(0));
        table.add_vhost(VhostId(1));
        TinyWorld {
            now: Cell::new(Time(1_000_000)),
            secrets: Cell::new(0),
            appended: Cell::default(),
            is_alarmed: Cell::new(false),
            alarm_left: Cell::new(usize::MAX),
            gauge: Gauge::default(),
            router: RefCell::default(),
            table: RefCell::new(table.clone()),
            topology: RefCell::new(Topology::new(table)),
            tables: Cell::new(0),
            queues: RefCell::default(),
            outbounds: RefCell::default(),
            wakes: RefCell::default(),
            share: Cell::new(usize::MAX),
            pages: RefCell::default(),
            relieved: RefCell::default(),
        }
    }
}

impl TinyWorld {
    /// Takes in the outbound half of a connection.
    pub(crate) fn connect(&self, encoder: Box<dyn Encoder>) -> ConnectionId {
        let mut outbounds = self.outbounds.borrow_mut();
        let slot = u32::try_from(outbounds.len()).expect("tests have few connections");
        let id = ConnectionId { cell: 0, slot, generation: 0 };
        let outbound = Outbound::new(id, encoder, OUTBOUND_LIMITS, self.gauge.clone());
        outbounds.push(Rc::new(RefCell::new(Some(outbound))));
        id
    }

    /// Forgets the outbound half of a connection.
    pub(crate) fn forget(&self, id: ConnectionId) {
        if let Some(outbound) = self.outbounds.borrow().get(id.slot as usize) {
            outbound.borrow_mut().take();
        }
    }

    /// Lets memory be short, or not.
    pub(crate) fn set_alarmed(&self, is_alarmed: bool) {
        self.is_alarmed.set(is_alarmed);
    }

    /// Lets memory be short until somebody has asked so often whether it is.
    pub(crate) fn set_alarmed_for(&self, times: usize) {
        self.is_alarmed.set(true);
        self.alarm_left.set(times);
    }

    /// Lets queues keep so many bytes of memory; beyond, their pages are being written until [`TinyWorld::end_pages`].
    pub(crate) fn set_share(&self, bytes: usize) {
        self.share.set(bytes);
    }

    /// No page is being written any more; gives who is to go on therefore.
    pub(crate) fn end_pages(&self) -> Vec<ConnectionId> {
        for (queue, draft) in self.pages.take() {
            page_failed(self, queue, draft);
        }
        self.relieved.take()
    }

    /// Who is to go on, having waited for a queue.
    pub(crate) fn relieved(&self) -> Vec<ConnectionId> {
        self.relieved.take()
    }

    /// How many messages wait in a queue.
    pub(crate) fn ready_len(&self, name: &str) -> usize {
        let queues = self.queues.borrow();
        let of_name = |queue: &Rc<RefCell<Option<Queue>>>| {
            let queue = queue.borrow();
            let queue = queue.as_ref().filter(|queue| queue.name().as_bytes() == name.as_bytes())?;
            Some(queue.ready_len())
        };
        queues.iter().find_map(of_name).unwrap_or(0)
    }

    /// Deletes a queue, on nobody's behalf.
    pub(crate) fn delete_queue(&self, name: &str) {
        let identity = Identity::guest();
        let connection = ConnectionId { cell: 0, slot: u32::MAX, generation: 0 };
        let actor = Actor { identity: &identity, connection, vhost: VhostId(0) };
        broker::delete_queue(self, &actor, name.as_bytes()).expect("it is there");
    }

    /// Sets the clock and wakes the queues that asked for it.
    pub(crate) fn set_time(&self, now: Time) {
        self.now.set(now);
        loop {
            let due = {
                let mut wakes = self.wakes.borrow_mut();
                let index = wakes.iter().position(|(at, _)| *at <= now);
                index.map(|index| wakes.swap_remove(index).1)
            };
            match due {
                Some(queue) => queue_woken(self, queue),
                None => return,
            }
        }
    }

    /// How many routing tables were made.
    pub(crate) fn tables(&self) -> usize {
        self.tables.get()
    }

    /// Bytes that waiting messages are charged with.
    pub(crate) fn charged(&self) -> usize {
        self.gauge.bytes()
    }

    /// How many queues there are.
    pub(crate) fn queues_len(&self) -> usize {
        self.queues.borrow().iter().filter(|queue| queue.borrow().is_some()).count()
    }
}

impl World for TinyWorld {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        let secret = self.secrets.get();
        self.secrets.set(secret.wrapping_add(1));
        [secret; 16]
    }

    fn is_alarmed(&self) -> bool {
        let left = self.alarm_left.get().checked_sub(1);
        self.alarm_left.set(left.unwrap_or_default());
        self.is_alarmed.get() && left.is_some()
    }

    fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    fn count_many(&self, _: Event, _: usize) {}

    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R {
        f(&mut self.router.borrow_mut(), &self.table.borrow())
    }

    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R {
        let mut topology = self.topology.borrow_mut();
        let before = topology.table().version();
        let result = f(&mut topology);
        self.tables.set(self.tables.get() + usize::from(topology.table().version() != before));
        *self.table.borrow_mut() = topology.table().clone();
        result
    }

    fn append(&self, records: Vec<NewRecord>) -> Appended {
        let first = Lsn(self.appended.get().0 + 1);
        self.appended.set(Lsn(self.appended.get().0 + records.len() as u64));
        Appended { first, through: self.appended.get() }
    }

    fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        self.append(records)
    }

    fn appended(&self) -> Lsn {
        self.appended.get()
    }

    fn group_bytes_max(&self) -> usize {
        64 << 20
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        let mut queues = self.queues.borrow_mut();
        let slot = u32::try_from(queues.len()).ok()?;
        queues.push(Rc::new(RefCell::new(Some(queue))));
        Some(QueueId { slot, generation: 0 })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        self.queues.borrow().get(id.slot as usize)?.borrow_mut().take()
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let queue = Rc::clone(self.queues.borrow().get(id.slot as usize)?);
        let mut queue = queue.borrow_mut();
        queue.as_mut().map(f)
    }

    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R {
        let cells: Vec<_> = ids.iter().map(|id| Rc::clone(&self.queues.borrow()[id.slot as usize])).collect();
        let mut locked: Vec<RefMut<'_, Option<Queue>>> = cells.iter().map(|cell| cell.borrow_mut()).collect();
        let mut queues: Vec<Option<&mut Queue>> = locked.iter_mut().map(|queue| queue.as_mut()).collect();
        f(&mut queues)
    }

    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R> {
        let outbound = Rc::clone(self.outbounds.borrow().get(id.slot as usize)?);
        let mut outbound = outbound.borrow_mut();
        let outbound = outbound.as_mut()?;
        // The journal of these tests is done at once.
        let _ = outbound.confirmed(Progress { written: Lsn::NEVER, synced: Lsn::NEVER });
        Some(f(outbound))
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        self.wakes.borrow_mut().push((at, id));
    }

    fn queue_memory_bytes(&self) -> usize {
        self.share.get()
    }

    fn page(&self, id: QueueId, work: PageWork) {
        if let PageWork::Write(drafts) = work {
            self.pages.borrow_mut().extend(drafts.into_iter().map(|draft| (id, draft)));
        }
    }

    fn resume(&self, _: ConnectionId) {}

    fn relieve(&self, publisher: ConnectionId) {
        self.relieved.borrow_mut().push(publisher);
    }

    fn header_reader(&self, origin: OriginId) -> &dyn HeaderReader {
        crate::header_reader(origin)
    }
}
