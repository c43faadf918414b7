//! The state that all cells share, and the tools of the run: randomness, trace, locks, network.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use imori_amqp10::settings::Settings as Amqp10Settings;
use imori_amqp091::settings::Settings as AmqpSettings;
use imori_core::confirm::Lsn;
use imori_core::delivery::RecordRef;
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::login::Login;
use imori_core::message::Origins;
use imori_core::name::Name;
use imori_core::outbound::{EncoderKinds, OutboundLimits};
use imori_core::queue::Queue;
use imori_core::restore::Awakening;
use imori_core::room::{Reserve, Room, RoomState};
use imori_core::route::hamt::Seed;
use imori_core::route::{Table, TableLimits};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_nats::settings::Settings as NatsSettings;
use imori_server::protocols::ProtocolSettings;
use imori_server::turn::{CellScratch, Link, Memory};
use imori_server::{Checkpointer, PageNews, TurnCounter};
use imori_stomp::settings::Settings as StompSettings;
use imori_store::manifest::ManifestLog;
use imori_store::recovery::Messages;
use imori_store::segment::Segments;
use imori_store::settings::Settings as JournalSettings;
use imori_testkit::toy;

use super::idle_task::Task;
use super::lock::Locks;
use super::network::Network;
use super::slots::Slots;
use crate::broker_end::Phase;
use crate::journal::{Device, DeviceFile, Log, Store};
use crate::planted::Bug;
use crate::property::{Property, Violation};
use crate::random::Random;

use super::waits::{Jobs, Status, StoreThreads};
use crate::trace::Trace;
use crate::workload::{Paging, Workload};

/// Longer than any run, because a client that stops reading answers no PING.
const PING_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Longer than any run, because simulated AMQP 1.0 clients send no heartbeats and take their time.
const NEVER: Duration = Duration::from_secs(1 << 20);

/// Time for NATS clients to leave while the broker stops.
const LAME_DUCK: Duration = Duration::from_millis(50);

/// The most channels of a connection.
pub(crate) const CHANNELS_MAX: usize = 4;

/// Bytes of frames that a connection may park. They count towards the memory alarm, and those of
/// all clients together stay well below its mark.
pub(crate) const PARKED_BYTES_MAX: usize = 1_500;

/// Numbers for the toy protocol that no protocol of the server has.
const TOY_ORIGINS: Origins = Origins::new(100, 1);
const TOY_NUMBER: u8 = 100;

/// A connection's pipe, as every cell reaches it.
pub(crate) struct PipeWire {
    pub(crate) id: ConnectionId,
    /// The transport.
    pub(crate) pipe: usize,
    /// Whether only the connection's own cell writes.
    pub(crate) is_own: bool,
    /// Set to give the connection's task a turn.
    pub(crate) woken: Rc<Cell<bool>>,
}

/// Bytes of memory for all long frames while they arrive.
const LONG_FRAMES_BYTES_MAX: usize = 1_000;

/// Bytes of a frame that are free of charge; every frame that does not publish is shorter.
const LONG_FRAME_BYTES_FREE: usize = 400;

/// One virtual cell.
pub(crate) struct CellState {
    pub(crate) status: Cell<Status>,
    pub(crate) links: Slots<Link<PipeWire>>,
    /// The tasks of its connections, without the one that has its turn.
    pub(crate) tasks: RefCell<Vec<Task>>,
    /// Transports to accept.
    pub(crate) arrivals: RefCell<VecDeque<usize>>,
    /// Transports whose connections an operator closes.
    pub(crate) closures: RefCell<VecDeque<usize>>,
    pub(crate) cell_scratch: CellScratch,
    pub(crate) timers: RefCell<BinaryHeap<Reverse<(Time, QueueId)>>>,
    /// Restored queues to wake.
    pub(crate) awakenings: RefCell<VecDeque<Awakening>>,
    /// Whether to wake the cell when more of the journal is durable.
    pub(crate) awaits_sync: Cell<bool>,
    /// Whether to wake the cell when more of the journal is written.
    pub(crate) awaits_write: Cell<bool>,
    /// Set when the journal has advanced.
    pub(crate) is_woken: Cell<bool>,
    /// Results of page jobs to pass to queues.
    pub(crate) page_news: RefCell<VecDeque<PageNews>>,
    /// Logins to check here, for connections of any cell.
    pub(crate) logins: RefCell<Vec<Login>>,
    /// The count of turns, which the checkpointer waits for.
    pub(crate) turns: TurnCounter,
    /// Whether the cell has told its connections that the broker stops.
    pub(crate) has_told: Cell<bool>,
}

impl CellState {
    /// Creates a cell with a read buffer of this size.
    pub(crate) fn new(read_bytes: usize) -> CellState {
        // A cell sleeps until it gets its first work.
        let turns = TurnCounter::default();
        turns.park(true);
        CellState {
            status: Cell::new(Status::Idle),
            links: Slots::default(),
            tasks: RefCell::default(),
            arrivals: RefCell::default(),
            closures: RefCell::default(),
            cell_scratch: CellScratch::new(read_bytes),
            timers: RefCell::default(),
            awakenings: RefCell::default(),
            awaits_sync: Cell::new(false),
            awaits_write: Cell::new(false),
            is_woken: Cell::new(false),
            page_news: RefCell::default(),
            logins: RefCell::default(),
            turns,
            has_told: Cell::new(false),
        }
    }
}

/// The state that all cells share.
pub(crate) struct Shared {
    pub(crate) random: Random,
    pub(crate) trace: Trace,
    pub(crate) bug: Option<Bug>,
    pub(crate) clock: Cell<Time>,
    pub(crate) phase: Cell<Phase>,
    /// Number of boots of the machine.
    pub(crate) boot: Cell<u8>,
    /// The number of decisions so far, which orders all events.
    pub(crate) step: Cell<u64>,
    pub(crate) locks: Locks,
    pub(crate) network: Network,
    pub(crate) cells: Vec<CellState>,
    pub(crate) topology: RefCell<Topology>,
    pub(crate) table: RefCell<Arc<Table>>,
    pub(crate) queues: Slots<Queue>,
    pub(crate) protocols: ProtocolSettings,
    pub(crate) toy: Arc<toy::Settings>,
    pub(crate) outbound: OutboundLimits,
    pub(crate) memory: Memory,
    pub(crate) log: RefCell<Log>,
    pub(crate) segments: Segments<Device>,
    pub(crate) manifest_log: RefCell<ManifestLog<Device>>,
    /// Messages that the start left in the journal.
    pub(crate) staying: RefCell<Option<Messages<DeviceFile>>>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) jobs: Jobs,
    pub(crate) threads: StoreThreads,
    pub(crate) paging: Paging,
    pub(crate) settings: JournalSettings,
    /// The number of records waiting for the disk at which publishers must wait.
    pub(crate) queued_max: u64,
    /// Chance, out of 8, that a cell continues at a lock instead of yielding.
    pub(crate) haste: usize,
    /// Whether connections are written only by their own cells.
    pub(crate) writes_own: bool,
    /// Whether credentials are checked outside the turn they arrive in.
    pub(crate) has_slow_logins: bool,
    /// The connections that the broker cut, each with its step.
    pub(crate) cuts: RefCell<Vec<(usize, u64)>>,
    /// The steps at which the run was at rest: messages accepted earlier had been written to all
    /// readers.
    pub(crate) rests: RefCell<Vec<u64>>,
    pub(crate) violation: RefCell<Option<Violation>>,
    /// The number of crash images checked.
    pub(crate) points: Cell<u64>,
    /// The number of comparisons with a restart.
    pub(crate) shadows: Cell<u64>,
    /// Records of delayed messages; a planted bug needs them.
    pub(crate) delayed: RefCell<BTreeSet<Lsn>>,
    /// Connections whose last bytes are still to be examined together: a message that one of them
    /// released may be in the last bytes of another.
    pub(crate) let_go: RefCell<Vec<usize>>,
    /// The claim on the room reserved for dead letters.
    pub(crate) reserve: Reserve,
    /// Bytes that dead letters may take at once while the disk is behind; `None` while it is not.
    pub(crate) behind_bytes: Cell<Option<usize>>,
    /// The last step at which a dead letter was pending.
    pub(crate) dead_letters_pended_at: Cell<Option<u64>>,
    /// Number of times that the broker ended while a dead letter was pending.
    pub(crate) ends_with_pending: Cell<u64>,
    /// Rejected messages that wait or waited for room; a planted bug needs them.
    pub(crate) rejected: RefCell<BTreeSet<RecordRef>>,
    /// Whether page writers have waited too long for records to become durable.
    pub(crate) gives_up: Cell<bool>,
}

impl Shared {
    pub(crate) fn new(
        workload: &Workload,
        random: Random,
        trace: Trace,
        bug: Option<Bug>,
        settings: JournalSettings,
        store: Store,
    ) -> Shared {
        let mut table = Table::new(Seed(1), TableLimits::default());
        table.add_vhost(VhostId(0), Name::from("/"));
        let stomp = StompSettings { parked_bytes_max: PARKED_BYTES_MAX, ..StompSettings::default() };
        let nats = NatsSettings {
            parked_bytes_max: PARKED_BYTES_MAX,
            ping_interval: PING_INTERVAL,
            lame_duck: LAME_DUCK,
            ..NatsSettings::default()
        };
        let amqp10 = Amqp10Settings {
            parked_bytes_max: PARKED_BYTES_MAX,
            idle_time_out: NEVER,
            transaction_time_max: NEVER,
            ..Amqp10Settings::default()
        };
        let toy = toy::Settings {
            vhost: VhostId(0),
            origins: TOY_ORIGINS,
            encoder_kinds: EncoderKinds::of_protocol(TOY_NUMBER),
            parked_bytes_max: PARKED_BYTES_MAX,
        };
        Shared {
            random,
            trace,
            bug,
            clock: Cell::new(Time(1_000_000)),
            phase: Cell::new(Phase::Serving),
            boot: Cell::new(0),
            step: Cell::new(1),
            locks: Locks::default(),
            network: Network::default(),
            cells: (0..workload.cells).map(|_| CellState::new(workload.read_bytes)).collect(),
            table: RefCell::new(Arc::new(table.clone())),
            topology: RefCell::new(Topology::new(table)),
            queues: Slots::default(),
            protocols: ProtocolSettings::new(stomp, nats, AmqpSettings::default(), amqp10),
            toy: Arc::new(toy),
            outbound: OutboundLimits {
                feed_bytes: workload.feed_bytes,
                unsent_bytes_max: workload.unsent_bytes_max,
                inboxes_max: 4,
                // The connection itself is a session.
                sessions_max: 1 + CHANNELS_MAX as u16,
            },
            // So little that long frames often wait for each other.
            memory: Memory::new(workload.mark_bytes.unwrap_or(usize::MAX))
                .with_long_frames(LONG_FRAMES_BYTES_MAX, LONG_FRAME_BYTES_FREE),
            log: RefCell::new(store.log.taking_checkpoints(workload.checkpoints_in_turn)),
            segments: store.segments,
            manifest_log: RefCell::new(store.manifest_log),
            staying: RefCell::default(),
            checkpointer: Checkpointer::new(workload.paging.files_max, (0, Lsn::NONE), Vec::new()),
            jobs: Jobs::default(),
            threads: StoreThreads::default(),
            paging: workload.paging,
            settings,
            queued_max: workload.queued_max,
            haste: workload.haste,
            writes_own: workload.writes_own,
            has_slow_logins: workload.has_slow_logins,
            cuts: RefCell::default(),
            rests: RefCell::default(),
            violation: RefCell::default(),
            points: Cell::new(0),
            shadows: Cell::new(0),
            delayed: RefCell::default(),
            let_go: RefCell::default(),
            reserve: Reserve::default(),
            behind_bytes: Cell::default(),
            dead_letters_pended_at: Cell::default(),
            ends_with_pending: Cell::default(),
            rejected: RefCell::default(),
            gives_up: Cell::new(false),
        }
    }

    /// Creates the state of the next process. The run's own state carries over.
    pub(crate) fn next_life(&mut self, workload: &Workload, store: Store) -> Shared {
        let random = std::mem::replace(&mut self.random, Random::new(0));
        let trace = std::mem::replace(&mut self.trace, Trace::new(None));
        let new = Shared::new(workload, random, trace, self.bug, self.settings, store);
        Shared {
            clock: self.clock.clone(),
            step: self.step.clone(),
            network: std::mem::take(&mut self.network),
            cuts: std::mem::take(&mut self.cuts),
            rests: std::mem::take(&mut self.rests),
            violation: std::mem::take(&mut self.violation),
            delayed: std::mem::take(&mut self.delayed),
            behind_bytes: self.behind_bytes.clone(),
            dead_letters_pended_at: self.dead_letters_pended_at.clone(),
            ends_with_pending: self.ends_with_pending.clone(),
            rejected: std::mem::take(&mut self.rejected),
            points: self.points.clone(),
            shadows: self.shadows.clone(),
            boot: self.boot.clone(),
            ..new
        }
    }

    pub(crate) fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether publishers may continue: few records wait for the disk, and it has room.
    pub(crate) fn has_caught_up(&self) -> bool {
        let log = self.log.borrow();
        log.queued() <= self.queued_max / 2 && !log.is_space_low && !log.is_stalled()
    }

    pub(crate) fn cell(&self, cell: usize) -> &CellState {
        self.cells.get(cell).expect("cells are numbered from 0")
    }

    /// The status of a thread; the cells come first, then the store's threads.
    pub(crate) fn status(&self, thread: usize) -> &Cell<Status> {
        match thread.checked_sub(self.cells.len()) {
            Some(of_store) => &self.threads.thread(of_store).status,
            None => &self.cell(thread).status,
        }
    }

    /// Notes a broken property; the run reports only the first.
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

impl Room for Shared {
    fn state(&self) -> RoomState {
        let log = self.log.borrow();
        let is_behind = self.behind_bytes.get().is_some() || log.queued() > self.queued_max;
        if log.is_space_low || is_behind {
            return RoomState::Scarce;
        }
        // Half a journal file.
        RoomState::Ample { command_bytes_max: log.group_bytes_max() / 2 }
    }

    fn reserve(&self) -> &Reserve {
        &self.reserve
    }

    /// Nothing, less than most dead letters need, or enough for all.
    fn reserve_bytes(&self) -> usize {
        let bytes = || *self.random.pick(&[0, 0, 4_096, 12_000, 1 << 20]);
        self.behind_bytes.get().unwrap_or_else(bytes)
    }

    fn is_alarmed(&self) -> bool {
        self.memory.is_disk_alarmed()
    }

    fn may_declare(&self) -> bool {
        true
    }
}
