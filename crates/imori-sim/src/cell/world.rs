//! The [`World`] of a virtual cell: at every lock the scheduler decides which thread continues.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use corosensei::Yielder;
use imori_core::broker::stream_progressed;
use imori_core::confirm::{Confirm, Level, Lsn, Progress};
use imori_core::delivery::PurgedRecords;
use imori_core::id::{ConnectionId, QueueId};
use imori_core::login::{Login, Verification};
use imori_core::memory::Gauge;
use imori_core::message::HeaderReaders;
use imori_core::outbound::Outbound;
use imori_core::paging::PageWork;
use imori_core::queue::Queue;
use imori_core::record::{
    Appended, Definition, MessageRecord, NewRecord, RecordKind, decode_purge, decode_settle, purge_records,
};
use imori_core::route::{Router, Table};
use imori_core::stream::{LateAnswer, StreamForms};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::Access;
use imori_core::world::{Counter, Quotas, StreamServices, World};
use imori_server::config;
use imori_server::login::{Authenticator, BuiltInUser};
use imori_server::protocols::{header_reader, stream_forms};
use imori_server::turn::{Host, Link, Signal, give_signal, with_outbound};
use imori_server::{PageRequest, page_request};

use crate::machine::Lock;
use crate::machine::Status;
use crate::machine::written_streams;
use crate::machine::{CellState, PipeWire, Shared, Spoken};
use crate::machine::{CoroutineContext, Held};
use crate::planted::Bug;
use crate::property::Property;

/// A message with its history and an ERROR frame: how far unsent bytes may exceed their limit. The longest seen was
/// 2,537 bytes.
const BOUND_SLACK_BYTES: usize = 3_000;

/// A running virtual cell.
pub(crate) struct CellWorld<'a> {
    pub(crate) id: usize,
    pub(crate) shared: &'a Shared,
    context: CoroutineContext<'a>,
    now: Cell<Time>,
    router: RefCell<Router>,
    table: RefCell<Arc<Table>>,
    /// The connection that is ending; its unsent output is kept for the checks.
    pub(crate) ending: Cell<Option<ConnectionId>>,
    /// The connection that has its turn. Once its client is gone the turn may release deliveries,
    /// so its unsent output is kept, too.
    pub(crate) turn_of: Cell<Option<ConnectionId>>,
    /// Whether the cell has written output and not yet returned its buffer.
    pub(crate) has_written: Cell<bool>,
    /// Whether the socket refused part of the last write.
    pub(crate) is_blocked: Cell<bool>,
    /// Whether a session ended while its connection was lent last; for a planted bug.
    pub(crate) is_session_ending: Cell<bool>,
    /// Whether a session ended in this turn; for a planted bug.
    pub(crate) has_session_ended: Cell<bool>,
    /// Whether the cell has returned its buffer and is waking consumers.
    pub(crate) is_waking: Cell<bool>,
    /// The last record that this cell has appended.
    last_own: Cell<Lsn>,
}

impl<'a> CellWorld<'a> {
    pub(crate) fn new(id: usize, shared: &'a Shared, yielder: &'a Yielder<(), ()>) -> CellWorld<'a> {
        CellWorld {
            id,
            shared,
            context: CoroutineContext::new(id, shared, yielder),
            now: Cell::new(shared.clock.get()),
            router: RefCell::default(),
            table: RefCell::new(Arc::clone(&shared.table.borrow())),
            ending: Cell::new(None),
            turn_of: Cell::new(None),
            has_written: Cell::new(false),
            is_blocked: Cell::new(false),
            is_session_ending: Cell::new(false),
            has_session_ended: Cell::new(false),
            is_waking: Cell::new(false),
            last_own: Cell::default(),
        }
    }

    pub(crate) fn state(&self) -> &'a CellState {
        self.shared.cell(self.id)
    }

    /// Yields to the scheduler with this status.
    pub(crate) fn stop(&self, status: Status) {
        self.context.stop(status);
    }

    /// Yields at random, so that others may run first.
    pub(crate) fn pause(&self) {
        self.context.pause();
    }

    /// Begins a turn and fixes its time.
    pub(crate) fn begin_turn(&self) {
        self.is_waking.set(false);
        self.state().turns.pass();
        let passed = self.shared.random.below(20) as u64;
        self.shared.clock.set(self.shared.clock.get().after(Duration::from_micros(passed)));
        self.now.set(self.shared.clock.get());
    }

    pub(crate) fn lock(&self, lock: Lock) -> Held<'a> {
        self.context.lock(lock)
    }

    /// Checks a connection's invariants after every use.
    pub(crate) fn check(&self, link: &Link<PipeWire>, was_ended: bool) {
        let (unsent, max) = (link.outbound.unsent(), self.shared.outbound.unsent_bytes_max);
        if unsent > max + BOUND_SLACK_BYTES {
            self.shared.violate(Property::Bounds, || {
                format!("{unsent} bytes are unsent in connection {}, {max} are allowed", link.wire.pipe)
            });
        }
        if !was_ended && link.outbound.is_ended() {
            self.shared.cuts.borrow_mut().push((link.wire.pipe, self.shared.step.get()));
        }
    }

    /// The progress of the journal.
    pub(crate) fn progress(&self) -> Progress {
        self.shared.log.borrow().progress
    }

    /// Moves the cell's time ahead under a planted bug.
    pub(crate) fn hasten(&self) {
        if self.shared.has(Bug::DueEarly) || self.shared.has(Bug::StreamExpiresEarly) {
            self.now.set(self.now.get().after(Duration::from_secs(1)));
        }
    }

    /// Whether a planted bug drops a delivery to this NATS connection.
    fn is_lost_on(&self, id: ConnectionId) -> bool {
        let cell = self.shared.cells.get(usize::from(id.cell));
        let slot = cell.and_then(|cell| cell.links.slot(id.slot));
        let mut slot = slot.as_ref().map(|slot| slot.borrow_mut());
        let link = slot.as_mut().and_then(|slot| slot.of(id.generation));
        let is_nats = link.is_some_and(|link| {
            matches!(self.shared.network.pipe(link.wire.pipe).spoken, Spoken::Product(config::Spoken::Nats))
        });
        is_nats && self.turn_of.get() != Some(id) && self.shared.random.chance(1, 8)
    }

    /// Whether the connection that has its turn is purging a queue.
    fn is_purging(&self) -> bool {
        let id = self.turn_of.get();
        let link = id.and_then(|id| self.shared.cells.get(usize::from(id.cell))?.links.slot(id.slot));
        let mut link = link.as_ref().map(|link| link.borrow_mut());
        let link = link.as_mut().zip(id).and_then(|(link, id)| link.of(id.generation));
        link.is_some_and(|link| match &self.shared.network.pipe(link.wire.pipe).spoken {
            Spoken::Internal(commands) => commands.is_purging(),
            Spoken::Product(_) | Spoken::Toy => false,
        })
    }

    /// Notes the records of delayed messages for a planted bug.
    fn note_delayed(&self, records: &[NewRecord], appended: Appended) {
        if !self.shared.has(Bug::DelayedSettleUnrecorded) {
            return;
        }
        for (index, record) in records.iter().enumerate() {
            let read = MessageRecord::decode(&record.payload).ok();
            let read = read.filter(|_| record.kind == RecordKind::Message);
            if read.is_some_and(|read| read.view().properties.delay_ms.is_some()) {
                self.shared.delayed.borrow_mut().insert(appended.first.plus(index));
            }
        }
    }

    fn is_of_delayed(&self, settles: &[NewRecord]) -> bool {
        let mut is_of_delayed = false;
        for settle in settles {
            let read = decode_settle(&settle.payload, &mut |record_ref| {
                is_of_delayed |= self.shared.delayed.borrow().contains(&record_ref.lsn);
            });
            read.expect("the core wrote it");
        }
        is_of_delayed
    }

    fn hand_over(&self, records: &[NewRecord], is_group: bool) -> Appended {
        self.pause();
        let count = records.len() as u64;
        let (mut appended, is_behind) = {
            let mut log = self.shared.log.borrow_mut();
            let appended = log.append(records, is_group);
            (appended, log.queued() > self.shared.queued_max || log.is_stalled())
        };
        let words = [self.id as u64, count, appended.first.0, appended.through.0];
        self.shared.trace.note(&words, || format!("cell {} appends {count} records: {appended:?}", self.id));
        if is_behind {
            self.shared.memory.raise_disk_alarm();
        }
        if self.shared.has(Bug::ConfirmOneTooFew) {
            appended.through = Lsn(appended.through.0 - 1);
        }
        if appended.through != Lsn::NEVER {
            self.last_own.set(appended.through);
        }
        appended
    }

    /// Keeps the unsent output of an ending connection for the checks; its client never sees it.
    pub(crate) fn keep_unsent(&self, link: &mut Link<PipeWire>) {
        self.shared.keep_unsent(link);
    }
}

impl Shared {
    /// Keeps the unsent output of an ending connection for the checks.
    pub(crate) fn keep_unsent(&self, link: &mut Link<PipeWire>) {
        let mut pipe = self.network.pipe(link.wire.pipe);
        while let Some((bytes, written)) = link.outbound.take_unsent() {
            pipe.unsent.extend_from_slice(bytes.get(written..).unwrap_or_default());
            let len = bytes.len();
            link.outbound.put_back(bytes, len);
        }
        pipe.is_unsent_incomplete |= link.outbound.has_unsent();
        if !std::mem::replace(&mut pipe.has_last_bytes, true) {
            self.let_go.borrow_mut().push(link.wire.pipe);
        }
    }
}

/// The record of a purge that takes the messages between its ranges too, and some behind them.
fn too_wide(payload: &[u8]) -> Vec<u8> {
    let purged = decode_purge(payload).expect("the core wrote it");
    let (Some(first), Some(last)) = (purged.first(), purged.last()) else { return payload.to_vec() };
    let wide = PurgedRecords { last: Lsn(last.last.0 + 8), ..*first };
    purge_records(&[wide]).pop().map_or_else(Vec::new, |record| record.payload)
}

impl Access for CellWorld<'_> {
    fn verify(&self, login: Login) -> Verification {
        let shared = self.shared;
        if !shared.has_slow_logins {
            return Verification::Done(BuiltInUser.verify(&login));
        }
        let cell = shared.cell(shared.random.below(shared.cells.len()));
        cell.logins.borrow_mut().push(login);
        Verification::Pending
    }
}

impl Quotas for CellWorld<'_> {}

impl StreamServices for CellWorld<'_> {
    fn await_journal(&self, id: QueueId, confirm: Confirm) {
        let (progress, appended) = (self.progress(), self.shared.log.borrow().appended());
        match self.shared.bug {
            Some(Bug::LostStreamProgress) if self.shared.random.chance(1, 4) => return,
            Some(Bug::StreamAtAppend) => {
                stream_progressed(self, id, Progress { written: appended, synced: appended });
            }
            Some(Bug::StreamAtWritten) => {
                stream_progressed(self, id, Progress { synced: progress.written, ..progress });
            }
            _ => {}
        }
        self.state().cell_scratch.note_stream(id, confirm);
    }

    fn answer_late(&self, confirm: Confirm, answer: LateAnswer) {
        self.state().cell_scratch.note_late_answer(confirm, answer);
    }

    fn forms(&self) -> &'static dyn StreamForms {
        stream_forms()
    }
}

impl World for CellWorld<'_> {
    type Room = Shared;
    type Quotas = Self;
    type Streams = Self;

    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        if self.shared.has(Bug::StaleConnection) {
            return [0; 16];
        }
        let (high, low) = (self.shared.random.next(), self.shared.random.next());
        (u128::from(high) << 64 | u128::from(low)).to_be_bytes()
    }

    fn is_alarmed(&self) -> bool {
        self.shared.memory.is_alarmed()
    }

    fn gauge(&self) -> &Gauge {
        self.shared.memory.gauge()
    }

    fn count_many(&self, counter: Counter, times: usize) {
        let say = || format!("cell {} counts {counter:?} {times} times", self.id);
        self.shared.trace.note(&[counter as u64, times as u64], say);
        if counter == Counter::Fault {
            self.shared.violate(Property::Panic, || String::from("a fault ended a connection"));
        }
    }

    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R {
        self.pause();
        if !self.shared.has(Bug::StaleTable) || self.shared.random.chance(1, 8) {
            *self.table.borrow_mut() = Arc::clone(&self.shared.table.borrow());
        }
        let table = Arc::clone(&self.table.borrow());
        f(&mut self.router.borrow_mut(), &table)
    }

    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R {
        let _held = self.lock(Lock::Topology);
        let mut topology = self.shared.topology.borrow_mut();
        let before = topology.table().version();
        let result = f(&mut topology);
        if topology.table().version() != before {
            self.pause();
            *self.shared.table.borrow_mut() = Arc::new(topology.table().clone());
        }
        result
    }

    fn append(&self, mut records: Vec<NewRecord>) -> Appended {
        if self.shared.has(Bug::LongRecordsCut) {
            let bytes_max = self.shared.log.borrow().group_bytes_max();
            records.iter_mut().for_each(|record| record.payload.truncate(bytes_max));
        }
        let records = self.shared.alter_rejections(records);
        let mut records = written_streams(self.shared.bug, records);
        if records.is_empty() {
            return Appended { first: Lsn::NONE, through: Lsn::NONE };
        }
        if self.shared.has(Bug::UnbindUnrecorded) {
            let is_gone = |record: &NewRecord| {
                let definition = Definition::decode(&record.payload);
                record.kind == RecordKind::Definition
                    && matches!(definition, Ok(Definition::BindingGone(_) | Definition::ExchangeGone { .. }))
            };
            if records.iter().any(is_gone) {
                return Appended { first: Lsn::NONE, through: Lsn::NONE };
            }
        }
        if self.shared.has(Bug::PurgeUnrecorded) && self.is_purging() {
            return Appended { first: Lsn::NONE, through: Lsn::NONE };
        }
        if self.shared.has(Bug::PurgeTooWide) {
            let purges = records.iter_mut().filter(|record| record.kind == RecordKind::Purge);
            purges.for_each(|record| record.payload = too_wide(&record.payload));
        }
        let is_settle = records.iter().all(|record| record.kind == RecordKind::Settle);
        if is_settle && self.shared.has(Bug::SettleUnrecorded) {
            return Appended { first: Lsn::NONE, through: Lsn::NONE };
        }
        if is_settle && self.shared.has(Bug::DelayedSettleUnrecorded) && self.is_of_delayed(&records) {
            return Appended { first: Lsn::NONE, through: Lsn::NONE };
        }
        let appended = self.hand_over(&records, false);
        if self.shared.has(Bug::MessageRecordedTwice) {
            let messages = records.iter().filter(|record| record.kind == RecordKind::Message);
            let again: Vec<NewRecord> = messages.cloned().collect();
            if !again.is_empty() {
                self.hand_over(&again, false);
            }
        }
        self.note_delayed(&records, appended);
        appended
    }

    fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        let mut records = self.shared.alter_rejections(records);
        let is_move = matches!(&*records, [message, settle]
            if message.kind == RecordKind::Message && settle.kind == RecordKind::Settle);
        if self.shared.has(Bug::MoveUngrouped) && is_move {
            let settle = records.split_off(1);
            self.hand_over(&settle, false);
            return self.hand_over(&records, false);
        }
        if self.shared.has(Bug::TransactionUngrouped) {
            // The records are not contiguous, as other cells append in between.
            let mut all: Option<Appended> = None;
            for record in records {
                let appended = self.hand_over(&[record], false);
                all = Some(Appended { first: all.map_or(appended.first, |all| all.first), ..appended });
            }
            return all.unwrap_or(Appended { first: Lsn::NONE, through: Lsn::NONE });
        }
        self.hand_over(&records, true)
    }

    fn confirm_own(&self, level: Level) -> Confirm {
        match self.shared.log.borrow().appended() {
            Lsn::NEVER => Confirm::of(level, Lsn::NEVER),
            _ => Confirm::of(level, self.last_own.get()),
        }
    }

    fn confirm_all(&self, level: Level) -> Confirm {
        Confirm::of(level, self.shared.log.borrow().appended())
    }

    fn group_bytes_max(&self) -> usize {
        if self.shared.has(Bug::LengthUnlimited) || self.shared.has(Bug::LongRecordsCut) {
            return usize::MAX;
        }
        self.shared.log.borrow().group_bytes_max()
    }

    fn room(&self) -> &Shared {
        self.shared
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        self.pause();
        let name = queue.name().clone();
        let (slot, generation) = self.shared.queues.insert(|_, _| queue);
        let text = || format!("cell {} makes queue {name} in slot {slot}", self.id);
        self.shared.trace.note(&[u64::from(slot), u64::from(generation)], text);
        Some(QueueId { slot, generation })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        let queue = {
            let _held = self.lock(Lock::Queue(id.slot));
            self.shared.queues.slot(id.slot)?.borrow_mut().remove(id.generation)?
        };
        self.pause();
        self.shared.queues.release(id.slot);
        if self.shared.has(Bug::Uncharged) {
            std::mem::forget(queue);
            return None;
        }
        self.shared
            .trace
            .note(&[u64::from(id.slot)], || format!("cell {} removes queue {}", self.id, queue.name()));
        Some(queue)
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        let is_unreached = self.shared.has(Bug::LostWake) && self.is_waking.get()
            || self.shared.has(Bug::SessionForgotten) && self.is_session_ending.get();
        if is_unreached {
            return None;
        }
        let _held = self.lock(Lock::Queue(id.slot));
        let slot = self.shared.queues.slot(id.slot)?;
        let mut slot = slot.borrow_mut();
        let generation = if self.shared.has(Bug::StaleQueue) { slot.generation } else { id.generation };
        let queue = slot.of(generation)?;
        let result = f(queue);
        self.shared.note_pending_dead_letters(queue);
        Some(result)
    }

    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R {
        let mut order: Vec<u32> = ids.iter().map(|id| id.slot).collect();
        if self.shared.has(Bug::QueuesFalling) {
            order.reverse();
        }
        order.dedup();
        let _held: Vec<Held<'_>> =
            order.iter().map(|slot| self.context.lock_one_of(Lock::Queue(*slot), true)).collect();
        let slots: Vec<_> = order.iter().map(|slot| (*slot, self.shared.queues.slot(*slot))).collect();
        let mut places: Vec<_> = slots
            .iter()
            .map(|(slot, place)| (*slot, place.as_ref().map(|place| place.borrow_mut())))
            .collect();
        let mut values: Vec<Option<&mut Queue>> = ids.iter().map(|_| None).collect();
        for (slot, place) in &mut places {
            let Some(place) = place else { continue };
            let id = QueueId { slot: *slot, generation: place.generation };
            // Of two ids with the same slot at most one is current.
            if let Some(value) = ids.iter().position(|other| *other == id).and_then(|at| values.get_mut(at)) {
                *value = place.value.as_mut();
            }
        }
        f(&mut values)
    }

    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R> {
        if self.shared.has(Bug::LiveDeliveryLost) && self.is_lost_on(id) {
            return None;
        }
        let before = self.cell_scratch().touched_len();
        let result = with_outbound(self, id, |outbound| self.watch_sessions(outbound, f));
        let is_newly_touched = self.cell_scratch().touched_len() > before;
        if is_newly_touched && self.shared.has(Bug::LostTouch) && self.shared.random.chance(1, 4) {
            let mut touched = self.cell_scratch().take_touched();
            touched.pop();
            touched.into_iter().for_each(|id| self.cell_scratch().note_touched(id, self.now()));
        }
        result
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        let is_retry = || {
            self.with_queue(id, |queue| queue.pending_dead_letters_len() > 0)
                .is_some_and(|is_pending_dead_letter| is_pending_dead_letter)
        };
        let is_lost = self.shared.has(Bug::LostTimer) || self.shared.has(Bug::LostRetry) && is_retry();
        if !is_lost {
            self.state().timers.borrow_mut().push(Reverse((at, id)));
        }
    }

    fn queue_memory_bytes(&self) -> usize {
        self.shared.paging.share_bytes
    }

    fn page(&self, id: QueueId, work: PageWork) {
        let owner =
            || self.with_queue(id, |queue| queue.durability().map(|durability| durability.id)).flatten();
        let asked = page_request(id, owner, work);
        self.pause();
        self.shared.trace.note(&[u64::from(id.slot)], || format!("cell {} asks for {asked:?}", self.id));
        let (checkpointer, jobs) = (&self.shared.checkpointer, &self.shared.jobs);
        match asked {
            PageRequest::Writer(job) => jobs.write(job),
            PageRequest::Reader(job) => jobs.read(job),
            PageRequest::Spared(pages) => checkpointer.spare(pages),
            PageRequest::Gone(pages, transient) => {
                transient.into_iter().for_each(|job| jobs.write(job));
                checkpointer.take_gone(pages);
            }
        }
    }

    fn resume(&self, publisher: ConnectionId) {
        give_signal(self, publisher, Signal::Resume);
    }

    fn unthrottle(&self, publisher: ConnectionId) {
        if !self.shared.has(Bug::LostUnthrottle) {
            give_signal(self, publisher, Signal::Unthrottled);
        }
    }

    fn quotas(&self) -> &Self {
        self
    }

    fn streams(&self) -> &Self {
        self
    }

    fn header_readers(&self) -> HeaderReaders {
        header_reader
    }
}
