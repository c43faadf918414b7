//! A single-threaded world that catches locks taken in the wrong order.
//!
//! Fields and methods let a test cause what a real world meets by chance: short memory, a full or
//! slow disk, a queue that must page.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, page_failed, queue_woken};
use imori_core::confirm::{Confirm, Level, Lsn, Progress};
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::limits::RECORD_SLACK_BYTES;
use imori_core::login::{Credentials, Login, SCRAM_BYTES, ScramParameters, Verdict, Verification};
use imori_core::memory::Gauge;
use imori_core::message::{DeathReason, HeaderReader, HeaderReaders, OriginId};
use imori_core::name::Name;
use imori_core::outbound::{Encoder, Outbound, OutboundLimits};
use imori_core::paging::PageWork;
use imori_core::queue::Queue;
use imori_core::record::{Appended, NewRecord, RecordKind};
use imori_core::room::{Purpose, Room as _, Unavailable};
use imori_core::route::hamt::Seed;
use imori_core::route::{Router, Table, TableLimits};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::Access;
use imori_core::world::{Counter, Quotas, StreamServices, World};

use crate::plain::Lines;
use crate::room::TestRoom;

/// The vhost of callers; `VhostId(1)` exists too.
pub const VHOST: VhostId = VhostId(0);
const QUEUES_MAX: usize = 500;

/// The limits of a caller, small enough for tests to reach.
pub const LIMITS: OutboundLimits =
    OutboundLimits { feed_bytes: 200, unsent_bytes_max: 2000, inboxes_max: 4, sessions_max: 4 };

/// The limits of a protocol's client.
pub const ROOMY_LIMITS: OutboundLimits = OutboundLimits {
    feed_bytes: 1024 * 1024,
    unsent_bytes_max: 16 * 1024 * 1024,
    inboxes_max: 4,
    sessions_max: 4,
};

/// Locks, in the order in which they may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lock {
    None,
    Topology,
    Queue,
    Outbound,
}

/// The world; tests set or inspect its public fields.
pub struct TestWorld {
    now: Cell<Time>,
    secrets: Cell<u8>,
    is_alarmed: Cell<bool>,
    /// Queries of the memory alarm that still answer yes.
    alarm_left: Cell<usize>,
    /// Whether checking credentials takes longer than a turn.
    pub slow_logins: Cell<bool>,
    /// Whether some user has no SCRAM keys.
    pub lacks_scram_keys: Cell<bool>,
    /// Logins whose check is pending.
    pub logins: RefCell<Vec<Login>>,
    /// Client ids claimed by connections.
    client_ids: RefCell<BTreeMap<Vec<u8>, ConnectionId>>,
    gauge: Gauge,
    counts: [Cell<usize>; Counter::ALL.len()],
    header_reader: fn(OriginId) -> &'static dyn HeaderReader,
    router: RefCell<Router>,
    topology: RefCell<Topology>,
    /// The published table, which routing reads.
    table: RefCell<Table>,
    tables: Cell<usize>,
    queues: RefCell<Vec<Slot<Queue>>>,
    outbounds: RefCell<Vec<Slot<Outbound>>>,
    wakes: RefCell<BTreeSet<(Time, QueueId)>>,
    lock: Cell<Lock>,
    appended: Cell<Lsn>,
    /// Whether every record is durable at once; the journal then keeps none.
    is_disk_prompt: Cell<bool>,
    pub(crate) identity: Identity,
    /// Publishers resumed after waiting for a slow reader.
    pub resumed: RefCell<Vec<ConnectionId>>,
    /// Publishers resumed after waiting for a queue.
    pub unthrottled: RefCell<Vec<ConnectionId>>,
    /// Number of times that a queue was locked on its own.
    pub queue_locks: Cell<usize>,
    /// Records with their numbers; the flag tells whether a record belongs to a group.
    pub journal: RefCell<Vec<(Lsn, NewRecord, bool)>>,
    /// The largest group of records in bytes.
    pub group_bytes_max: Cell<usize>,
    /// Bytes of memory that a queue may use before it pages.
    pub share: Cell<usize>,
    /// The disk room.
    pub room: TestRoom,
    /// Why the journal takes no messages and definitions, if it takes none.
    unavailable: Cell<Option<Unavailable>>,
    /// Page work requested by queues.
    pub work: RefCell<Vec<(QueueId, PageWork)>>,
}

/// A slot for a queue or a connection; the number counts earlier uses.
type Slot<T> = (u32, Option<T>);

impl Default for TestWorld {
    fn default() -> TestWorld {
        TestWorld::new()
    }
}

impl TestWorld {
    /// A world for tests of the core: the journal keeps every record, and none ever becomes
    /// durable.
    #[must_use]
    pub fn new() -> TestWorld {
        let mut table = Table::new(Seed(1), TableLimits::default());
        table.add_vhost(VHOST, Name::from("/"));
        table.add_vhost(VhostId(1), Name::from("tenant"));
        TestWorld {
            now: Cell::new(Time(1_000_000)),
            secrets: Cell::new(0),
            client_ids: RefCell::default(),
            is_alarmed: Cell::new(false),
            alarm_left: Cell::new(usize::MAX),
            slow_logins: Cell::new(false),
            lacks_scram_keys: Cell::new(false),
            logins: RefCell::default(),
            gauge: Gauge::default(),
            counts: Default::default(),
            header_reader: |_| &Lines,
            router: RefCell::default(),
            table: RefCell::new(table.clone()),
            tables: Cell::default(),
            topology: RefCell::new(Topology::new(table)),
            queues: RefCell::default(),
            outbounds: RefCell::default(),
            wakes: RefCell::default(),
            lock: Cell::new(Lock::None),
            appended: Cell::default(),
            is_disk_prompt: Cell::new(false),
            identity: Identity::guest(),
            resumed: RefCell::default(),
            unthrottled: RefCell::default(),
            queue_locks: Cell::default(),
            journal: RefCell::default(),
            group_bytes_max: Cell::new(1 << 20),
            share: Cell::new(usize::MAX),
            room: TestRoom::default(),
            unavailable: Cell::default(),
            work: RefCell::default(),
        }
    }

    /// A world for clients of protocols: every record is durable at once, and records may be large.
    #[must_use]
    pub fn reading(header_reader: fn(OriginId) -> &'static dyn HeaderReader) -> TestWorld {
        let world = TestWorld { header_reader, ..TestWorld::new() };
        world.is_disk_prompt.set(true);
        world.group_bytes_max.set(64 << 20);
        world
    }

    /// A world that continues after this journal; the caller restores the queues.
    #[must_use]
    pub fn after(journal: &[(Lsn, NewRecord, bool)], now: Time) -> TestWorld {
        let world = TestWorld::new();
        world.now.set(now);
        world.appended.set(journal.last().map_or(Lsn::NONE, |(lsn, ..)| Lsn(lsn.0 + 1)));
        world.journal.replace(journal.to_vec());
        world
    }

    /// Checks the lock order and returns the lock held before; skipped without debug assertions, as
    /// in benchmarks.
    #[inline]
    fn lock(&self, lock: Lock) -> Lock {
        if !cfg!(debug_assertions) {
            return Lock::None;
        }
        let before = self.lock.replace(lock);
        assert!(before < lock, "{lock:?} is taken while {before:?} is held");
        before
    }

    #[inline]
    fn unlock(&self, before: Lock) {
        self.lock.set(before);
    }

    #[inline]
    fn locked<R>(&self, lock: Lock, f: impl FnOnce() -> R) -> R {
        let before = self.lock(lock);
        let result = f();
        self.unlock(before);
        result
    }

    // ---- Connections.

    /// Opens the outbound half of a protocol's connection in a new slot.
    pub fn open(&self, encoder: Box<dyn Encoder>) -> ConnectionId {
        let slot = u32::try_from(self.outbounds.borrow().len()).expect("tests have few connections");
        let id = ConnectionId { cell: 0, slot, generation: 0 };
        self.open_at(id, encoder, ROOMY_LIMITS);
        id
    }

    /// Opens the outbound half of this connection.
    pub fn open_at(&self, id: ConnectionId, encoder: Box<dyn Encoder>, limits: OutboundLimits) {
        let mut outbounds = self.outbounds.borrow_mut();
        let slot = id.slot as usize;
        if outbounds.len() <= slot {
            outbounds.resize_with(slot + 1, || (0, None));
        }
        outbounds[slot] = (id.generation, Some(Outbound::new(id, encoder, limits, self.gauge.clone())));
    }

    /// Drops the outbound half of a connection.
    pub fn forget(&self, id: ConnectionId) {
        if let Some(slot) = self.outbounds.borrow_mut().get_mut(id.slot as usize) {
            slot.1 = None;
        }
    }

    // ---- Time.

    /// Lets time pass and wakes due queues; returns the number of wake-ups.
    pub fn pass(&self, time: Duration) -> usize {
        self.set_time(self.now.get().after(time))
    }

    /// Lets time pass until `end`, like [`TestWorld::pass`].
    pub fn set_time(&self, end: Time) -> usize {
        let mut woken = 0;
        loop {
            let first = self.wakes.borrow().first().copied().filter(|(at, _)| *at <= end);
            let Some((at, id)) = first else {
                break;
            };
            self.wakes.borrow_mut().pop_first();
            self.now.set(at.max(self.now.get()));
            queue_woken(self, id);
            woken += 1;
        }
        self.now.set(end);
        woken
    }

    // ---- Memory and disk.

    /// Raises or ends the memory alarm.
    pub fn set_alarmed(&self, is_alarmed: bool) {
        self.is_alarmed.set(is_alarmed);
    }

    /// Raises the memory alarm for the next `times` queries.
    pub fn set_alarmed_for(&self, times: usize) {
        self.is_alarmed.set(true);
        self.alarm_left.set(times);
    }

    /// Fails every pending page write; returns the publishers that may continue.
    pub fn end_pages(&self) -> Vec<ConnectionId> {
        for (queue, work) in self.work.take() {
            if let PageWork::Write(drafts) = work {
                drafts.into_iter().for_each(|draft| page_failed(self, queue, draft));
            }
        }
        self.unthrottled.take()
    }

    /// Refuses records of messages and definitions for this reason, or takes them again.
    pub fn refuse_records(&self, cause: Option<Unavailable>) {
        self.unavailable.set(cause);
    }

    /// Numbers the next records from behind this one on, as if other cells had appended theirs before.
    pub fn number_records_after(&self, last: Lsn) {
        self.appended.set(last);
    }

    /// Keeps records from becoming durable until [`TestWorld::sync_disk`].
    pub fn hold_disk(&self) {
        self.is_disk_prompt.set(false);
    }

    /// Makes every record durable and tells each connection.
    pub fn sync_disk(&self) {
        let slots = self.outbounds.borrow().len() as u32;
        for slot in 0..slots {
            let generation = self.outbounds.borrow()[slot as usize].0;
            let id = ConnectionId { cell: 0, slot, generation };
            let confirmed = self.with_outbound(id, |outbound| outbound.confirmed(self.progress()));
            let wakes = confirmed.unwrap_or_default();
            broker::wake_consumers(self, id, &wakes);
        }
    }

    fn progress(&self) -> Progress {
        Progress { written: self.appended.get(), synced: self.appended.get() }
    }

    // ---- Inspection.

    /// The number of the last record.
    pub fn appended(&self) -> Lsn {
        self.appended.get()
    }

    /// The value of a counter.
    pub fn counted(&self, counter: Counter) -> usize {
        self.counts[counter as usize].get()
    }

    /// The number of dead letters sent, for any reason.
    #[must_use]
    pub fn dead_lettered(&self) -> usize {
        DeathReason::ALL.into_iter().map(|reason| self.counted(Counter::dead_lettered(reason))).sum()
    }

    /// Bytes of memory charged for waiting messages.
    pub fn charged(&self) -> usize {
        self.gauge.bytes()
    }

    /// The number of routing tables published so far.
    pub fn tables(&self) -> usize {
        self.tables.get()
    }

    /// The number of queues.
    pub fn queues_len(&self) -> usize {
        self.queues.borrow().iter().filter(|(_, queue)| queue.is_some()).count()
    }

    /// The queue with this name.
    pub fn queue(&self, name: &str) -> Option<QueueId> {
        self.table.borrow().queue(VHOST, name.as_bytes())
    }

    /// Ready and unsettled messages of a queue; `None` if the queue does not exist.
    pub fn depth(&self, name: &str) -> Option<(usize, usize)> {
        self.with_queue(self.queue(name)?, |queue| (queue.ready_len(), queue.unsettled_len()))
    }

    /// Ready messages of a queue; 0 if the queue does not exist.
    pub fn ready_len(&self, name: &str) -> usize {
        self.depth(name).map_or(0, |(ready, _)| ready)
    }

    /// The number of bindings of an exchange.
    pub fn bindings(&self, exchange: &str) -> usize {
        let table = self.table.borrow();
        let mut count = 0;
        if let Some(exchange) = table.exchange(VHOST, exchange.as_bytes()) {
            exchange.for_each_binding(&mut |_| count += 1);
        }
        count
    }

    /// Calls `act` with the actor of an operator, who has no connection.
    pub fn as_operator<R>(&self, act: impl FnOnce(&Actor<'_>) -> R) -> R {
        let connection = ConnectionId { cell: 0, slot: u32::MAX, generation: 0 };
        act(&Actor { identity: &self.identity, connection, vhost: VHOST })
    }

    /// Deletes a queue as an operator.
    pub fn delete_queue(&self, name: &str) {
        self.as_operator(|actor| broker::delete_queue(self, actor, name.as_bytes())).expect("it is there");
    }
}

/// The verdict on a login: only the built-in user is accepted; its SCRAM proof is all sevens.
pub fn verdict(login: &Login) -> Verdict {
    let is_right = |part: &Option<Box<[u8]>>| part.as_deref().unwrap_or(b"guest") == b"guest";
    let is_proved = match &login.credentials {
        Credentials::Password { user, password } => is_right(user) && is_right(password),
        Credentials::Scram { user, proof, .. } => **user == *b"guest" && *proof == [7; SCRAM_BYTES],
        _ => false,
    };
    match login.is_local && is_proved {
        true => Verdict::Granted(Identity::guest()),
        false => Verdict::Refused,
    }
}

impl Access for TestWorld {
    /// Checks the login at once, or leaves it pending for the test if logins are slow.
    fn verify(&self, login: Login) -> Verification {
        if self.slow_logins.get() {
            self.logins.borrow_mut().push(login);
            return Verification::Pending;
        }
        Verification::Done(verdict(&login))
    }

    fn scram_parameters(&self, _: &[u8]) -> Option<ScramParameters> {
        Some(ScramParameters { salt: Box::from(*b"salt"), iterations: 4096 })
    }

    fn all_have_scram_keys(&self) -> bool {
        !self.lacks_scram_keys.get()
    }

    fn scram_signature(&self, _: &[u8], _: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        Some([8; SCRAM_BYTES])
    }
}

impl Quotas for TestWorld {
    fn claim_client_id(&self, actor: &Actor<'_>, id: &[u8]) -> bool {
        let mut ids = self.client_ids.borrow_mut();
        *ids.entry(id.to_vec()).or_insert(actor.connection) == actor.connection
    }

    fn release_client_id(&self, actor: &Actor<'_>) {
        self.client_ids.borrow_mut().retain(|_, owner| *owner != actor.connection);
    }
}

impl StreamServices for TestWorld {}

impl World for TestWorld {
    type Room = TestRoom;
    type Quotas = TestWorld;
    type Streams = TestWorld;

    fn quotas(&self) -> &TestWorld {
        self
    }

    fn streams(&self) -> &TestWorld {
        self
    }

    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        let secret = self.secrets.get();
        self.secrets.set(secret.wrapping_add(1));
        [secret; 16]
    }

    #[inline]
    fn is_alarmed(&self) -> bool {
        if !self.is_alarmed.get() {
            return false;
        }
        let left = self.alarm_left.get().checked_sub(1);
        self.alarm_left.set(left.unwrap_or_default());
        left.is_some()
    }

    fn room(&self) -> &TestRoom {
        &self.room
    }

    fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    fn count_many(&self, counter: Counter, times: usize) {
        let count = &self.counts[counter as usize];
        count.set(count.get() + times);
    }

    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R {
        f(&mut self.router.borrow_mut(), &self.table.borrow())
    }

    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R {
        self.locked(Lock::Topology, || {
            let mut topology = self.topology.borrow_mut();
            let before = topology.table().version();
            let result = f(&mut topology);
            self.tables.set(self.tables.get() + usize::from(topology.table().version() != before));
            self.table.replace(topology.table().clone());
            result
        })
    }

    fn admits(&self, purpose: Purpose) -> Result<(), Unavailable> {
        match self.unavailable.get() {
            Some(cause) => Err(cause),
            None if self.room.has_room_for(purpose) => Ok(()),
            None => Err(Unavailable::DiskFull),
        }
    }

    fn append(&self, records: Vec<NewRecord>) -> Appended {
        let first = Lsn(self.appended.get().0 + 1);
        // Of two counts of one message the later wins, so its queue must stay locked in between.
        let is_count = |record: &NewRecord| record.kind == RecordKind::Count;
        assert!(self.lock.get() == Lock::Queue || !records.iter().any(is_count), "its queue is locked");
        for record in records {
            assert!(record.payload.len() + RECORD_SLACK_BYTES <= self.group_bytes_max(), "it fits");
            self.appended.set(Lsn(self.appended.get().0 + 1));
            if !self.is_disk_prompt.get() {
                self.journal.borrow_mut().push((self.appended.get(), record, false));
            }
        }
        Appended { first, through: self.appended.get() }
    }

    fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        let bytes: usize = records.iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum();
        assert!(bytes <= self.group_bytes_max(), "they fit");
        let begins = self.journal.borrow().len();
        self.appended.set(Lsn(self.appended.get().0 + 1));
        let appended = self.append(records);
        self.journal.borrow_mut().iter_mut().skip(begins).for_each(|(.., is_of_group)| *is_of_group = true);
        self.appended.set(Lsn(self.appended.get().0 + 1));
        Appended { through: self.appended.get(), ..appended }
    }

    fn confirm_own(&self, level: Level) -> Confirm {
        Confirm::of(level, self.appended.get())
    }

    fn confirm_all(&self, level: Level) -> Confirm {
        Confirm::of(level, self.appended.get())
    }

    fn group_bytes_max(&self) -> usize {
        self.group_bytes_max.get()
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        let mut queues = self.queues.borrow_mut();
        let free = queues.iter().position(|(_, queue)| queue.is_none());
        let slot = match free {
            Some(slot) => slot,
            None if queues.len() >= QUEUES_MAX => return None,
            None => {
                queues.push((0, None));
                queues.len() - 1
            }
        };
        queues[slot].1 = Some(queue);
        Some(QueueId { slot: slot as u32, generation: queues[slot].0 })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        let mut queues = self.queues.borrow_mut();
        let (generation, place) = queues.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let queue = place.take()?;
        *generation += 1;
        Some(queue)
    }

    #[inline]
    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        self.queue_locks.set(self.queue_locks.get() + 1);
        let queues = &mut *self.queues.borrow_mut();
        let Some((generation, Some(queue))) = queues.get_mut(id.slot as usize) else { return None };
        if *generation != id.generation {
            return None;
        }
        let before = self.lock(Lock::Queue);
        let result = f(queue);
        self.unlock(before);
        Some(result)
    }

    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R {
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?} rise");
        self.locked(Lock::Queue, || {
            let mut queues = self.queues.borrow_mut();
            let mut slots = queues.iter_mut().zip(0..).peekable();
            let mut lent: Vec<Option<&mut Queue>> = Vec::with_capacity(ids.len());
            for id in ids {
                while slots.next_if(|(_, slot)| *slot < id.slot).is_some() {}
                let is_it = |slot: &(&mut Slot<Queue>, u32)| slot.1 == id.slot && slot.0.0 == id.generation;
                lent.push(slots.next_if(is_it).and_then(|((_, queue), _)| queue.as_mut()));
            }
            f(&mut lent)
        })
    }

    #[inline]
    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R> {
        let outbounds = &mut *self.outbounds.borrow_mut();
        let Some((generation, Some(outbound))) = outbounds.get_mut(id.slot as usize) else { return None };
        if *generation != id.generation {
            return None;
        }
        if self.is_disk_prompt.get() {
            let _ = outbound.confirmed(self.progress());
        }
        let before = self.lock(Lock::Outbound);
        let result = f(outbound);
        self.unlock(before);
        Some(result)
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        self.wakes.borrow_mut().insert((at, id));
    }

    fn queue_memory_bytes(&self) -> usize {
        self.share.get()
    }

    fn page(&self, queue: QueueId, work: PageWork) {
        self.work.borrow_mut().push((queue, work));
    }

    fn resume(&self, publisher: ConnectionId) {
        self.resumed.borrow_mut().push(publisher);
    }

    fn unthrottle(&self, publisher: ConnectionId) {
        self.unthrottled.borrow_mut().push(publisher);
    }

    fn header_readers(&self) -> HeaderReaders {
        self.header_reader
    }
}
