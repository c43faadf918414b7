//! State shared by all cells.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Waker;
use std::time::Instant;

use arc_swap::ArcSwap;
use imori_core::authorize::{Actor, Identity, Renewal};
use imori_core::id::{ConnectionId, QueueId, VhostId};
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::quota::QuotaReached;
use imori_core::room::{Reserve, Room, RoomState};
use imori_core::route::{Table, TableLimits};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::turn::StartTls;
use imori_core::world::StreamTransfer;
use tokio::sync::{Notify, mpsc, watch};
use tracing::warn;

use crate::access::Access;
use crate::bodies::Bodies;
use crate::cell_state::counters::Counters;
use crate::cell_state::histogram::Latencies;
use crate::cell_state::internal_counts::InternalCounts;
use crate::cell_state::load::Load;
use crate::cell_state::pulse::Pulse;
use crate::cell_state::turn_counter::TurnCounter;
use crate::clock::Clock;
use crate::config::{Config, Limits, ListenerName, ProtocolName, Service, Spoken, WritePolicy};
use crate::limits::{
    BODIES_SHARE_OF_MARK, BUILT_IN_SUBSCRIPTIONS, CONNECTIONS_MAX, DISK_FAILURE_GOODBYE,
    INTERNAL_CLIENTS_MAX, OPERATOR_CLIENTS_MAX, SERVICE_CLIENTS_MAX,
};
use crate::login::{LoginCounts, Verifiers};
use crate::peers::admission::{Admission, AdmissionLimits, Ticket, descriptors_max};
use crate::peers::client::Client;
use crate::peers::log_limit::PeerLogLimit;
use crate::peers::sums::Gone;
use crate::pipe::ClientPipe;
use crate::quotas::{Full, Seats, StoredBytes, StreamRequestCounts};
use crate::run_facts::RunFacts;
use crate::services::{AutomationState, TakeConnections};
use crate::settings::{Settings, mark_bytes};
use crate::slots::{SlotKey, Slots, unpoisoned};
use crate::stall::Stalls;
use crate::stall::happenings::Happenings;
use crate::store::rate_limited_log::RateLimitedLog;
use crate::store::{Checkpointer, Damages, Journal, Pager};
use crate::tls::{ByteStream, Handshakers};
use crate::traces::{Observation, TracedClient};
use crate::turn::{Link, Memory, Signal, Wire};
use crate::websocket::FramedWriter;

/// The connection of a request that has none. No client has this id, so nothing is exclusive to it.
pub(crate) const NO_CONNECTION: ConnectionId =
    ConnectionId { cell: u16::MAX, slot: u32::MAX, generation: u32::MAX };

/// Connections for which a cell allocates at once, a kilobyte each; an idle broker only has a few internal ones.
const CONNECTION_PAGE_SLOTS: usize = 128;

/// A connection as every cell reaches it.
pub(crate) type TcpLink = Link<TcpWire>;

/// Writes a connection's socket and wakes its task.
pub(crate) struct TcpWire {
    pub(crate) writer: Writer,
    /// Whether any cell may write the socket, or only the connection's own.
    pub(crate) policy: WritePolicy,
    /// Wakes the connection's task; set once the task has run.
    pub(crate) waker: Option<Waker>,
    pub(crate) client: Client,
}

/// The path by which bytes reach a client.
#[derive(Clone)]
pub(crate) enum Writer {
    /// A plain or TLS stream; only the connection's cell uses TLS.
    Stream(ByteStream),
    /// Messages of a WebSocket; only the connection's cell writes them.
    Framed(Arc<FramedWriter>),
    /// An internal client.
    Internal(Arc<ClientPipe>),
}

impl Writer {
    /// Writes as much as the client's side takes now.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Stream(stream) => stream.try_write(bytes),
            Writer::Framed(writer) => writer.write(bytes),
            Writer::Internal(pipe) => pipe.write(bytes),
        }
    }
}

impl Wire for TcpWire {
    type Writer = Writer;

    fn writer(&self, is_own_cell: bool) -> Option<Writer> {
        match (&self.writer, self.policy) {
            (Writer::Framed(_) | Writer::Stream(ByteStream::Tls(_)), _) | (_, WritePolicy::Own)
                if !is_own_cell =>
            {
                None
            }
            _ => Some(self.writer.clone()),
        }
    }

    fn wrote(&mut self, now: Time) {
        self.client.written_at = now;
    }

    fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// The way connections of a listener begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenerKind {
    pub(crate) name: ListenerName,
    /// TLS negotiated within the protocol.
    pub(crate) start_tls: StartTls,
    /// Passwords from other hosts are accepted without TLS.
    pub(crate) accepts_plaintext: bool,
}

impl ListenerKind {
    /// The protocol of its connections; `None` if the WebSocket request decides.
    pub(crate) fn protocol(self) -> Option<ProtocolName> {
        match self.name.service {
            Service::Messages(protocol) => Some(protocol),
            Service::WebSocket
            | Service::NatsMonitor
            | Service::Admin
            | Service::Automation
            | Service::Http => None,
        }
    }
}

/// Something for a cell to take over.
pub(crate) enum Arrival {
    /// An accepted connection.
    Accepted(Accepted),
    /// A job to run on the cell.
    Job(Box<dyn FnOnce() + Send>),
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: TcpStream,
    pub(crate) listener: ListenerKind,
    pub(crate) ticket: Ticket,
}

/// A cell as seen by other threads.
pub(crate) struct CellHandle {
    pub(crate) connections: Slots<TcpLink, CONNECTION_PAGE_SLOTS>,
    /// Connections of internal clients.
    pub(crate) internal_clients: InternalCounts,
    /// The channel to the cell.
    pub(crate) arrivals: mpsc::UnboundedSender<Arrival>,
    pub(crate) load: Load,
    pub(crate) turns: TurnCounter,
    pub(crate) pulse: Pulse,
    pub(crate) counters: Counters,
    pub(crate) latencies: Latencies,
    /// Traffic of its closed connections.
    pub(crate) gone: Gone,
    /// Notified when its last connection is gone.
    pub(crate) emptied: Notify,
}

impl CellHandle {
    pub(crate) fn new(arrivals: mpsc::UnboundedSender<Arrival>) -> CellHandle {
        CellHandle {
            connections: Slots::new(
                CONNECTIONS_MAX + INTERNAL_CLIENTS_MAX + SERVICE_CLIENTS_MAX + OPERATOR_CLIENTS_MAX,
            ),
            internal_clients: InternalCounts::default(),
            arrivals,
            load: Load::new(),
            turns: TurnCounter::default(),
            pulse: Pulse::default(),
            counters: Counters::default(),
            latencies: Latencies::default(),
            gone: Gone::default(),
            emptied: Notify::new(),
        }
    }

    /// Connections with sockets.
    pub(crate) fn socket_connections(&self) -> usize {
        self.connections.len().saturating_sub(self.internal_clients.total())
    }
}

/// The phases of the broker's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The broker is serving.
    Serving,
    /// The broker accepts nothing new and lets connections finish.
    Stopping,
    /// The broker is ending.
    Ended,
}

/// Why a server ended unexpectedly.
#[derive(Debug)]
pub enum ServeError {
    /// A fault in the broker's own code.
    Fault(String),
    /// The disk failed; the next start recovers what is on it.
    Disk(String),
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ServeError::Fault(why) | ServeError::Disk(why)) = self;
        write!(f, "the broker ended by itself: {why}")
    }
}

impl Error for ServeError {}

/// State shared by all cells.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) run: RunFacts,
    /// The settings in force.
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) table: Arc<ArcSwap<Table>>,
    pub(crate) topology: Mutex<Topology>,
    pub(crate) queues: Slots<Queue>,
    pub(crate) cells: OnceLock<Box<[CellHandle]>>,
    pub(crate) admission: Admission,
    pub(crate) peer_log_limit: PeerLogLimit,
    /// Limits audit records of refused clients.
    pub(crate) refusal_log_limit: PeerLogLimit,
    /// Limits log lines about deliveries that a protocol cannot express.
    pub(crate) no_form_log: RateLimitedLog,
    /// Users, vhosts and permissions.
    pub(crate) access: Arc<Access>,
    /// Connections by user and vhost.
    pub(crate) seats: Seats,
    /// Stored bytes by vhost.
    pub(crate) stored_bytes: StoredBytes,
    /// Requests to the API of streams by vhost.
    pub(crate) stream_requests: StreamRequestCounts,
    pub(crate) verifiers: Verifiers,
    pub(crate) handshakers: Handshakers,
    pub(crate) observation: Observation,
    pub(crate) logins: LoginCounts,
    pub(crate) memory: Memory,
    /// What HTTP listeners hold of the bodies of requests.
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) journal: Journal,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) pager: Pager,
    pub(crate) damages: Arc<Damages>,
    /// Memory for a queue's waiting messages, in bytes.
    pub(crate) queue_memory_bytes: AtomicUsize,
    pub(crate) stalls: Stalls,
    /// Recent events for operators.
    pub(crate) happenings: Happenings,
    /// Whether there is a memory alarm, for tasks that wait for a change.
    pub(crate) alarm: watch::Sender<bool>,
    pub(crate) phase: watch::Sender<Phase>,
    /// Services that have something to finish after the phase `Ended`.
    pub(crate) finishing: watch::Sender<usize>,
    /// Why the broker had to end, if it had to.
    pub(crate) fault: Mutex<Option<ServeError>>,
    /// Transfers of streams that clients ask for; set at the start.
    pub(crate) transfers: OnceLock<mpsc::Sender<StreamTransfer>>,
    /// The service of the gateway's listeners; set at the start.
    pub(crate) gateway: OnceLock<Arc<dyn TakeConnections>>,
    /// Whether the automation works, as it tells.
    pub(crate) automation: Mutex<AutomationState>,
}

impl Room for Shared {
    fn state(&self) -> RoomState {
        if self.journal.is_room_scarce() {
            return RoomState::Scarce;
        }
        RoomState::Ample { command_bytes_max: self.journal.mark_bytes() }
    }

    fn reserve(&self) -> &Reserve {
        self.journal.reserve()
    }

    fn reserve_bytes(&self) -> usize {
        self.journal.reserve_bytes()
    }

    fn is_alarmed(&self) -> bool {
        self.memory.is_disk_alarmed()
    }

    fn must_settle_wait(&self) -> bool {
        self.journal.must_settle_wait()
    }

    fn may_declare(&self) -> bool {
        self.journal.has_room_to_declare()
    }
}

impl Shared {
    pub(crate) fn cell(&self, cell: u16) -> Option<&CellHandle> {
        self.cells.get()?.get(usize::from(cell))
    }

    /// The number of the cell for a new connection: the first until it is busy, then the least busy one. Waking another
    /// core costs more than the rest of a round trip.
    pub(crate) fn least_busy(&self) -> Option<u16> {
        let busy_percent = self.settings.load().config.cells.busy_percent;
        let cells = self.cells.get()?;
        if cells.first()?.load.busy_percent() <= busy_percent {
            return Some(0);
        }
        (0..).zip(cells).min_by_key(|(_, cell)| cell.load.busy_percent()).map(|(id, _)| id)
    }

    /// Logs live deliveries that were left out, rate-limited. Clients are not told, because they could take an
    /// unknown error for the end of the connection.
    #[cold]
    pub(crate) fn log_no_form(&self, deliveries: usize) {
        if let Some(folded) = self.no_form_log.admit("no form", Instant::now()) {
            warn!(
                deliveries,
                folded,
                "a subscription was not given a message, as its protocol has no form for the subject or it is larger \
                 than `nats.max_payload`"
            );
        }
    }

    /// Applies the limits that a reload may change.
    pub(crate) fn limit(&self, config: &Config) {
        self.admission.limit(AdmissionLimits::of(&config.limits));
        let places = descriptors_max().min(config.limits.connections as usize);
        self.memory.set_mark(mark_bytes(self.run.memory_bytes, config), places);
        self.bodies.limit(mark_bytes(self.run.memory_bytes, config) / BODIES_SHARE_OF_MARK);
        self.queue_memory_bytes.store(config.limits.queue_memory_bytes.as_usize(), Ordering::Relaxed);
        let mut topology = unpoisoned(self.topology.lock());
        topology.limit(table_limits(&config.limits));
        self.table.store(Arc::new(topology.table().clone()));
    }

    /// Runs `f` on a connection under its lock; `None` if it is gone.
    pub(crate) fn with_link<R>(&self, id: ConnectionId, f: impl FnOnce(&mut TcpLink) -> R) -> Option<R> {
        self.cell(id.cell)?.connections.with(link_key(id), f)
    }

    /// The client of a connection, for a trace. The connection must not be locked.
    pub(crate) fn traced_client(&self, id: ConnectionId) -> Option<TracedClient> {
        self.with_link(id, |link| TracedClient::of(&link.wire.client))
    }

    /// Sends a signal to a connection's task and wakes it.
    pub(crate) fn signal(&self, id: ConnectionId, signal: Signal) {
        self.with_link(id, |link| link.signal(signal));
    }

    /// Tells every live connection of a user about the user's change. With `None` as identity the connection ends. A
    /// client that is logging in gets the new identity too.
    pub(crate) fn renew_identity(&self, user: &Name, identity: Option<Identity>) {
        let shown = user.to_string();
        let renewal = Renewal { user: user.clone(), identity };
        // Internal clients first: a subscription that begins with an earlier identity has its connection by now, which
        // hears of the change below.
        self.for_each_link(|link| {
            if let Writer::Internal(pipe) = &link.wire.writer {
                pipe.renew(&renewal);
            }
        });
        self.for_each_link(|link| {
            let Client { facts, protocol, .. } = &link.wire.client;
            // A NATS client may log in again as another user at any time.
            let may_be = facts.user.is_empty() || facts.user == shown || *protocol == Some(Spoken::Nats);
            if may_be {
                link.renew(renewal.clone());
            }
        });
    }

    /// Admits a connection; see [`Access::enter`](imori_core::world::Access::enter).
    pub(crate) fn enter(&self, actor: &Actor<'_>) -> Result<(), QuotaReached> {
        let user = &actor.identity.user;
        let user_max = self.access.user_quota(user).connections_max;
        let vhost_max = self.access.vhost_quota(actor.vhost).connections_max;
        let taken = self.seats.take(actor.connection, (user, user_max), (actor.vhost, vhost_max));
        taken.map_err(|full| match full {
            Full::Vhost(max) => {
                let vhost = self.vhost_name(actor.vhost);
                QuotaReached::VhostConnections { vhost, user: user.clone(), max }
            }
            Full::User(max) => QuotaReached::UserConnections { user: user.clone(), max },
        })
    }

    /// Opens a session; see [`Access::open_session`](imori_core::world::Access::open_session). If the user's sessions
    /// are limited, they are opened one at a time.
    pub(crate) fn open_session<R>(
        &self,
        actor: &Actor<'_>,
        open: impl FnOnce() -> R,
    ) -> Result<R, QuotaReached> {
        let user = &actor.identity.user;
        let Some(max) = self.access.user_quota(user).parts_max else {
            return Ok(open());
        };
        self.seats.with_user(user, |connections| {
            let count = |id| self.with_link(id, |link| link.outbound.open_sessions().count());
            let opened: usize = connections.filter_map(count).sum();
            if opened >= max { Err(QuotaReached::Sessions { user: user.clone(), max }) } else { Ok(open()) }
        })
    }

    /// The name of a vhost; empty if it is gone.
    pub(crate) fn vhost_name(&self, vhost: VhostId) -> Name {
        self.table.load().vhost_name(vhost).cloned().unwrap_or_else(|| Name::new(b""))
    }

    /// Applies the limits of users and vhosts; connections that wait for a rate check it again.
    pub(crate) fn limit_users(&self, access: &Access) {
        let gauge = self.memory.gauge();
        self.stored_bytes.limit(&access.bytes_max(), gauge);
        let before = gauge.rates();
        gauge.note_rates(access.rates());
        if before == 0 {
            return;
        }
        self.for_each_link(|link| link.signal(Signal::Unthrottled));
    }

    /// Runs `f` on each live connection of every cell, one at a time under its lock.
    fn for_each_link(&self, mut f: impl FnMut(&mut TcpLink)) {
        for handle in self.cells.get().into_iter().flatten() {
            for key in handle.connections.keys() {
                handle.connections.with(key, &mut f);
            }
        }
    }

    /// Stops the broker and lets connections finish; a second call ends it at once.
    pub(crate) fn stop(&self) {
        self.phase.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving => Phase::Stopping,
                Phase::Stopping | Phase::Ended => Phase::Ended,
            }
        });
    }

    /// Ends the broker because of a fault in its core.
    pub(crate) fn fail(&self, why: &str) {
        unpoisoned(self.fault.lock()).get_or_insert_with(|| ServeError::Fault(String::from(why)));
        self.phase.send_replace(Phase::Ended);
    }

    /// Ends the broker because its disk failed. Clients get a moment to receive a goodbye.
    pub(crate) fn fail_of_disk(&self, why: &str) {
        unpoisoned(self.fault.lock()).get_or_insert_with(|| ServeError::Disk(String::from(why)));
        self.phase.send_modify(|phase| *phase = (*phase).max(Phase::Stopping));
        std::thread::sleep(DISK_FAILURE_GOODBYE);
        self.phase.send_replace(Phase::Ended);
    }
}

/// Limits of a vhost's routing table.
pub(crate) fn table_limits(limits: &Limits) -> TableLimits {
    TableLimits {
        queues_max: limits.queues as usize,
        bindings_max: limits.bindings as usize,
        subscriptions_max: limits.subscriptions as usize,
        subscriptions_built_in: BUILT_IN_SUBSCRIPTIONS,
    }
}

pub(crate) fn link_key(id: ConnectionId) -> SlotKey {
    SlotKey { slot: id.slot, generation: id.generation }
}

pub(crate) fn queue_key(id: QueueId) -> SlotKey {
    SlotKey { slot: id.slot, generation: id.generation }
}
