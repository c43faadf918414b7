//! A cell: a thread with its own runtime that owns connections, and the [`World`] in which the broker's verbs run on
//! it.
//!
//! A turn appends bytes for other connections to their outbound halves at once. They are written together when the
//! thread is about to park, or earlier if many are waiting.

use std::cell::{Cell as Slot, OnceCell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use arc_swap::{ArcSwap, Cache};
use imori_core::authorize::{Actor, Identity, Refusal};
use imori_core::broker::queue_woken;
use imori_core::confirm::{Confirm, Level, Lsn};
use imori_core::delivery::{Outcome, QueuePosition};
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::login::{Login, SCRAM_BYTES, ScramParameters, Verification};
use imori_core::memory::Gauge;
use imori_core::message::HeaderReaders;
use imori_core::name::Name;
use imori_core::outbound::Outbound;
use imori_core::paging::PageWork;
use imori_core::queue::{DeadLetter, Queue};
use imori_core::quota::QuotaReached;
use imori_core::record::{Appended, NewRecord};
use imori_core::route::{Router, Table};
use imori_core::stream::{LateAnswer, StreamForms};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::Access;
use imori_core::world::{
    Change, Counter, Latency, Observer, Quotas, Sent, StreamRequests, StreamServices, StreamTransfer, World,
};
use tokio::sync::Notify;
use tracing::{info, warn};

use crate::audit::ClaimedUser;
use crate::cell_state::spin::Spin;
use crate::limits::{FLUSH_AFTER, FLUSH_CONNECTIONS_MAX, QUEUE_MEMORY_SHARE_WHEN_SHORT, READ_BYTES};
use crate::link_verdicts::LinkVerdicts;
use crate::login::Verdicts;
use crate::protocols::{header_reader, stream_forms};
use crate::quotas::TurnRates;
use crate::settings::Settings;
use crate::shared::{Shared, TcpLink, TcpWire, Writer, link_key, queue_key};
use crate::slots::{SlotKey, unpoisoned};
use crate::store::{PageRequest, page_request};
use crate::traces::CurrentMessage;
use crate::turn::{
    CellScratch, Host, Memory, Signal, await_journal, check_memory, flush_touched, give_signal,
    release_confirms, with_outbound,
};

/// The state of this thread's cell.
pub(crate) struct Cell {
    pub(crate) id: u16,
    pub(crate) shared: Arc<Shared>,
    cell_scratch: CellScratch,
    now: Slot<Time>,
    /// Spinning before the thread sleeps.
    pub(crate) spin: Spin,
    /// Whether there was a memory alarm at the last check.
    was_alarmed: Slot<bool>,
    turn_rates: TurnRates,
    table: RefCell<Cache<Arc<ArcSwap<Table>>, Arc<Table>>>,
    router: RefCell<Router>,
    timers: RefCell<BinaryHeap<Reverse<(Time, QueueId)>>>,
    timer_set: Arc<Notify>,
    /// The last record that this cell has appended.
    last_own: Slot<Lsn>,
    /// The message that is being published, while messages are observed.
    current_message: CurrentMessage,
}

thread_local! {
    static CURRENT: OnceCell<Cell> = const { OnceCell::new() };
}

impl Cell {
    /// Runs `f` with this thread's cell; `None` on other threads.
    pub(crate) fn current<R>(f: impl FnOnce(&Cell) -> R) -> Option<R> {
        CURRENT.with(|current| current.get().map(f))
    }

    /// Creates this thread's cell.
    pub(crate) fn start(id: u16, shared: Arc<Shared>) {
        CURRENT.with(|current| {
            current.get_or_init(|| Cell::new(id, shared));
        });
    }

    fn new(id: u16, shared: Arc<Shared>) -> Cell {
        let table = Cache::new(Arc::clone(&shared.table));
        let spin = Duration::from_micros(u64::from(shared.settings.load().config.cells.spin_us));
        Cell {
            id,
            cell_scratch: CellScratch::new(READ_BYTES),
            now: Slot::new(shared.clock.now()),
            was_alarmed: Slot::new(false),
            turn_rates: TurnRates::default(),
            spin: Spin::new(spin),
            table: RefCell::new(table),
            router: RefCell::new(Router::default()),
            timers: RefCell::new(BinaryHeap::new()),
            timer_set: Arc::new(Notify::new()),
            last_own: Slot::default(),
            current_message: CurrentMessage::default(),
            shared,
        }
    }

    /// The settings in force, for a new connection.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    /// Begins a connection's turn and updates the current time.
    pub(crate) fn begin_turn(&self) {
        self.pass();
        let now = self.shared.clock.now();
        self.now.set(now);
        if let Some(handle) = self.shared.cell(self.id) {
            handle.pulse.at_boundary(now);
        }
    }

    /// Messages published by this cell's clients.
    pub(crate) fn published(&self) -> u64 {
        self.shared.cell(self.id).map_or(0, |handle| handle.counters.get(Counter::Published))
    }

    /// Ends a connection's turn; flushes if many connections wait for it, or for long.
    pub(crate) fn end_turn(&self) {
        self.pass();
        self.check_memory();
        self.await_journal();
        self.spin.begin(self.now.get());
        let touched = self.cell_scratch.touched_len();
        if touched == 0 {
            return;
        }
        let waited = self.shared.clock.now().since(self.cell_scratch.touched_since());
        if touched >= FLUSH_CONNECTIONS_MAX || waited >= FLUSH_AFTER {
            flush_touched(self);
        }
    }

    /// Called when the thread is about to park.
    pub(crate) fn park(&self) {
        self.rest();
        if let Some(handle) = self.shared.cell(self.id) {
            handle.turns.park(true);
            handle.load.park();
        }
    }

    /// Called when the thread wakes.
    pub(crate) fn unpark(&self) {
        self.begin_turn();
        if let Some(handle) = self.shared.cell(self.id) {
            handle.turns.park(false);
            handle.load.unpark();
        }
    }

    /// Marks a point at which the journal and the queues agree about this cell's work.
    fn pass(&self) {
        if let Some(handle) = self.shared.cell(self.id) {
            handle.turns.pass();
        }
    }

    /// Called when no task is ready: flushes everything.
    pub(crate) fn rest(&self) {
        self.begin_turn();
        flush_touched(self);
        self.check_memory();
    }

    /// Registers for a wake-up by the journal's progress if answers wait for it.
    fn await_journal(&self) {
        let waiters = self.shared.journal.waiters();
        await_journal(self, |write_too| waiters.wait(self.id, write_too), || waiters.progress());
    }

    /// Releases answers after progress of the journal.
    pub(crate) fn release_confirms(&self) {
        self.begin_turn();
        let progress = self.shared.journal.waiters().progress();
        release_confirms(self, progress);
    }

    fn check_memory(&self) {
        if self.shared.memory.is_disk_alarmed() && self.shared.journal.has_caught_up() {
            self.shared.journal.waiters().want_all(false);
            let parked = self.shared.memory.end_disk_alarm();
            if !parked.is_empty()
                && let Some(before) = self.shared.journal.admit("caught up")
            {
                info!(connections = parked.len(), before, "the disk has caught up, publishers go on");
            }
            parked.into_iter().for_each(|id| give_signal(self, id, Signal::AlarmEnded));
        }
        check_memory(self);
        let is_alarmed = self.shared.memory.is_alarmed();
        if self.was_alarmed.replace(is_alarmed) != is_alarmed {
            self.shared.alarm.send_if_modified(|told| std::mem::replace(told, is_alarmed) != is_alarmed);
        }
    }

    /// Notes the last record of this cell, and makes publishers wait if the disk is behind.
    fn note_appended(&self, appended: Appended) -> Appended {
        // A record that the journal refused holds up no answer but its own.
        if appended.through != Lsn::NEVER {
            self.last_own.set(appended.through);
        }
        self.check_journal();
        appended
    }

    /// Makes publishers of persistent messages wait if the disk is behind.
    fn check_journal(&self) {
        if self.shared.journal.is_behind() && self.shared.memory.raise_disk_alarm() {
            self.shared.journal.waiters().want_all(true);
            let queued_bytes = self.shared.journal.queued_bytes();
            if let Some(before) = self.shared.journal.admit("behind") {
                warn!(queued_bytes, before, "the disk is behind, publishers of persistent messages wait");
            }
        }
    }

    /// When the next queue timer is due, and the notification of an earlier one.
    pub(crate) fn next_timer(&self) -> (Option<Time>, Arc<Notify>) {
        let next = self.timers.borrow().peek().map(|Reverse((at, _))| *at);
        (next, Arc::clone(&self.timer_set))
    }

    /// Removes a connection of this cell.
    pub(crate) fn remove_connection(&self, id: ConnectionId) {
        let Some(handle) = self.shared.cell(self.id) else {
            return;
        };
        self.shared.seats.leave(id);
        if let Some(link) = handle.connections.remove(link_key(id)) {
            handle.gone.add(&link.wire.client, &link.outbound);
            self.shared.report_connection("connection.closed", &link.wire.client);
        }
        if handle.connections.len() == 0 {
            handle.emptied.notify_one();
        }
    }

    /// Runs the queue timers that are due.
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

impl Access for Cell {
    fn maker_of(&self, identity: &Identity) -> Option<Name> {
        // The bearer of an access token is no stored user, even if one has the name.
        let is_stored = identity.rights.valid_until().is_none();
        let maker = self.shared.access.maker_of(str::from_utf8(identity.user.as_bytes()).ok()?)?;
        is_stored.then(|| Name::from(maker.as_str()))
    }

    fn identity_of(&self, maker: &[u8]) -> Option<Identity> {
        self.shared.access.identity_of_maker(str::from_utf8(maker).ok()?)
    }

    fn verify(&self, login: Login) -> Verification {
        let verdicts = || Arc::new(LinkVerdicts(Arc::downgrade(&self.shared))) as Arc<dyn Verdicts>;
        let (connection, claimed) = (login.connection, ClaimedUser::of(&login.credentials));
        let verification = self.shared.verifiers.verify(login, verdicts);
        if let Verification::Done(verdict) = &verification {
            self.shared.note_login(connection, &claimed, verdict);
        }
        verification
    }

    fn scram_parameters(&self, user: &[u8]) -> Option<ScramParameters> {
        self.shared.verifiers.authenticator().scram_parameters(user)
    }

    fn all_have_scram_keys(&self) -> bool {
        self.shared.verifiers.authenticator().all_have_scram_keys()
    }

    fn scram_signature(&self, user: &[u8], messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        self.shared.verifiers.authenticator().scram_signature(user, messages)
    }

    fn refused(&self, actor: &Actor<'_>, refusal: &Refusal) {
        self.shared.note_refused(actor, refusal);
    }

    fn changed(&self, actor: &Actor<'_>, change: Change, object: &dyn fmt::Display) {
        self.shared.note_changed(actor, change, object);
    }
}

impl Quotas for Cell {
    fn enter(&self, actor: &Actor<'_>) -> Result<(), QuotaReached> {
        self.shared.enter(actor)
    }

    fn claim_client_id(&self, actor: &Actor<'_>, id: &[u8]) -> bool {
        self.shared.seats.claim(actor.connection, id)
    }

    fn release_client_id(&self, actor: &Actor<'_>) {
        self.shared.seats.release(actor.connection);
    }

    fn open_session<R>(&self, actor: &Actor<'_>, open: impl FnOnce() -> R) -> Result<R, QuotaReached> {
        self.shared.open_session(actor, open)
    }

    fn queues_max(&self, vhost: VhostId) -> Option<usize> {
        self.shared.access.vhost_quota(vhost).parts_max
    }

    fn has_rate(&self, actor: &Actor<'_>) -> bool {
        // The broker's own changes have no turn.
        self.cell_scratch.is_turn_of(actor.connection) && self.turn_rates.has_any(&*self.shared.access, actor)
    }

    fn must_wait_for_rate(&self, actor: &Actor<'_>) -> bool {
        if !self.has_rate(actor) {
            return false;
        }
        let Some(until) = self.turn_rates.open_at(&*self.shared.access, actor, self.now.get()) else {
            return false;
        };
        self.cell_scratch.note_rate_wait(until);
        self.count(Counter::RateLimited);
        true
    }

    fn bytes_changed(&self, vhost: VhostId, change: i64) {
        self.shared.stored_bytes.add(vhost, change, self.gauge());
    }

    fn bytes_max_reached(&self, vhost: VhostId) -> Option<QuotaReached> {
        let max = self.shared.stored_bytes.reached(vhost)?;
        Some(QuotaReached::Bytes { vhost: self.shared.vhost_name(vhost), max })
    }
}

impl StreamServices for Cell {
    fn await_journal(&self, id: QueueId, confirm: Confirm) {
        self.cell_scratch.note_stream(id, confirm);
    }

    fn answer_late(&self, confirm: Confirm, answer: LateAnswer) {
        self.cell_scratch.note_late_answer(confirm, answer);
    }

    fn forms(&self) -> &'static dyn StreamForms {
        stream_forms()
    }

    fn transfer(&self, transfer: StreamTransfer) -> bool {
        self.shared.transfers.get().is_some_and(|transfers| transfers.try_send(transfer).is_ok())
    }

    fn count_request(&self, vhost: VhostId, is_error: bool) {
        self.shared.stream_requests.count(vhost, is_error);
    }

    fn requests(&self, vhost: VhostId) -> StreamRequests {
        self.shared.stream_requests.of(vhost)
    }
}

impl Observer for Cell {
    fn publishing(&self, sent: &Sent<'_>) -> Time {
        // The time of a turn is the time at which it started.
        let now = self.shared.clock.now();
        let publisher = self.cell_scratch.turn_of();
        let client = |id| self.shared.traced_client(id);
        self.shared.observation.publishing(now, &self.current_message, sent, publisher, client);
        now
    }

    fn published(&self, from: Time, sent: &Sent<'_>, receivers: usize) {
        let now = self.shared.clock.now();
        let vhost = || {
            let table = self.shared.table.load();
            table.vhost_name(sent.vhost).map(Name::to_string).unwrap_or_default()
        };
        self.shared.observation.spans.note((from, now), vhost, || self.secret(), sent, receivers);
        self.shared.observation.published(now, &self.current_message, receivers);
    }

    fn enqueuing(&self, at: QueuePosition, queue: &Queue) {
        self.shared.observation.enqueuing(self.shared.clock.now(), &self.current_message, at, queue);
    }

    fn delivered(&self, from: Option<QueuePosition>, to: ConnectionId) {
        let client = |id| self.shared.traced_client(id);
        self.shared.observation.delivered(self.shared.clock.now(), &self.current_message, from, to, client);
    }

    fn settling(&self, at: QueuePosition, by: ConnectionId, outcome: Outcome) {
        self.shared.observation.settling(self.shared.clock.now(), at, by, outcome);
    }

    fn dead_lettering(&self, vhost: VhostId, letter: &DeadLetter) {
        self.shared.observation.dead_lettering(self.shared.clock.now(), &self.current_message, vhost, letter);
    }
}

impl World for Cell {
    type Room = Shared;
    type Quotas = Cell;
    type Streams = Cell;

    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        let mut secret = [0; 16];
        // Without the system's generator nothing is secure.
        getrandom::fill(&mut secret).expect("the system's random generator works");
        secret
    }

    fn is_alarmed(&self) -> bool {
        self.shared.memory.is_alarmed()
    }

    fn room(&self) -> &Shared {
        &self.shared
    }

    fn gauge(&self) -> &Gauge {
        self.shared.memory.gauge()
    }

    fn count_many(&self, counter: Counter, times: usize) {
        if let Some(handle) = self.shared.cell(self.id) {
            handle.counters.count(counter, times as u64);
        }
        if counter == Counter::NoForm {
            self.shared.log_no_form(times);
        }
    }

    #[inline]
    fn published(&self, actor: &Actor<'_>, messages: usize, bytes: usize) {
        self.count_many(Counter::Published, messages);
        if self.gauge().rates() > 0 && self.cell_scratch.is_turn_of(actor.connection) {
            self.turn_rates.charge(&*self.shared.access, actor, self.now.get(), (messages, bytes));
        }
    }

    fn observe(&self, latency: Latency, took: Duration) {
        if let Some(handle) = self.shared.cell(self.id) {
            handle.latencies.count(latency, took);
        }
    }

    #[inline]
    fn observer(&self) -> Option<&dyn Observer> {
        if self.shared.observation.is_on() { Some(self) } else { None }
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

    fn append(&self, records: Vec<NewRecord>) -> Appended {
        self.note_appended(self.shared.journal.append(records))
    }

    fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        self.note_appended(self.shared.journal.append_group(records))
    }

    #[inline]
    fn confirm_own(&self, level: Level) -> Confirm {
        match self.shared.journal.appended() {
            Lsn::NEVER => Confirm::of(level, Lsn::NEVER),
            _ => Confirm::of(level, self.last_own.get()),
        }
    }

    fn confirm_all(&self, level: Level) -> Confirm {
        Confirm::of(level, self.shared.journal.appended())
    }

    fn group_bytes_max(&self) -> usize {
        self.shared.journal.group_bytes_max()
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        let key = self.shared.queues.insert(|_| queue)?;
        Some(QueueId { slot: key.slot, generation: key.generation })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        let queue = self.shared.queues.remove(queue_key(id))?;
        if let Ok(told @ 1..) = i64::try_from(queue.bytes_told()) {
            self.bytes_changed(queue.vhost(), -told);
        }
        Some(queue)
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
        with_outbound(self, id, f)
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        let mut timers = self.timers.borrow_mut();
        let is_first = timers.peek().is_none_or(|Reverse((first, _))| at < *first);
        timers.push(Reverse((at, id)));
        if is_first {
            self.timer_set.notify_one();
        }
    }

    fn quotas(&self) -> &Cell {
        self
    }

    fn streams(&self) -> &Cell {
        self
    }

    fn queue_memory_bytes(&self) -> usize {
        let memory = &self.shared.memory;
        let is_short = memory.gauge().bytes() > memory.mark_bytes() / 2;
        self.shared.queue_memory_bytes.load(Ordering::Relaxed)
            / if is_short { QUEUE_MEMORY_SHARE_WHEN_SHORT } else { 1 }
    }

    fn page(&self, id: QueueId, work: PageWork) {
        let owner =
            || self.with_queue(id, |queue| queue.durability().map(|durability| durability.id)).flatten();
        match page_request(id, owner, work) {
            PageRequest::Writer(job) => self.shared.pager.write(job),
            PageRequest::Reader(job) => self.shared.pager.read(job),
            PageRequest::Spared(pages) => self.shared.checkpointer.spare(pages),
            PageRequest::Gone(pages, transient) => {
                transient.into_iter().for_each(|job| self.shared.pager.write(job));
                self.shared.checkpointer.take_gone(pages);
            }
        }
    }

    fn resume(&self, publisher: ConnectionId) {
        give_signal(self, publisher, Signal::Resume);
    }

    fn unthrottle(&self, publisher: ConnectionId) {
        give_signal(self, publisher, Signal::Unthrottled);
    }

    fn header_readers(&self) -> HeaderReaders {
        header_reader
    }
}

impl Host for Cell {
    type Wire = TcpWire;

    fn id(&self) -> u16 {
        self.id
    }

    fn cell_scratch(&self) -> &CellScratch {
        &self.cell_scratch
    }

    fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut TcpLink) -> R) -> Option<R> {
        self.shared.with_link(id, f)
    }

    fn write(&self, writer: &Writer, bytes: &[u8]) -> io::Result<usize> {
        writer.write(bytes)
    }
}

/// Ends the broker on a panic while a queue or the topology is locked, because its state is unknown then.
pub(crate) struct FatalIfPanicking<'a>(pub(crate) &'a Shared);

impl Drop for FatalIfPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail("a fault in the broker's core; see the log for the panic");
        }
    }
}
