//! The setup of a simulated broker and its clients from a seed.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use corosensei::Coroutine;
use corosensei::stack::DefaultStack;
use imori_core::time::Time;
use imori_server::config;
use imori_stomp::codec::version::Version;
use imori_store::disk::sim_disk::SimDisk;

use crate::cell::CellWorld;
use crate::client::{
    Amqp10Client, AmqpClient, Client, ClientProtocol, Connection, InternalClient, NatsClient, StompClient,
    ToyClient,
};
use crate::journal::{Definitions, Device, Store};
use crate::machine::STORE_THREADS;
use crate::machine::{CHANNELS_MAX, CommandPipe, Shared, Spoken};
use crate::model::Model;
use crate::planted::Bug;
use crate::random::Random;
use crate::store::StoreThread;
use crate::streams::{Ledger, StreamClient};
use crate::trace::{Trace, TraceReader};
use crate::workload::Workload;

/// Bytes of a coroutine's stack; the broker's verbs nest a few closures deep.
const STACK_BYTES: usize = 256 * 1024;

/// The time without an event after which a run counts as at rest: longer than any wait of an
/// ending connection, shorter than the broker's periodic work.
pub(crate) const REST: Duration = Duration::from_secs(6);

/// The same for runs whose messages may be delayed for longer.
pub(crate) const LONG_REST: Duration = Duration::from_secs(70);

/// A run.
pub(crate) struct Simulation {
    pub(crate) shared: Rc<Shared>,
    pub(crate) coroutines: Vec<Coroutine<(), (), ()>>,
    pub(crate) clients: Vec<Client>,
    pub(crate) model: Model,
    pub(crate) workload: Workload,
    /// The clients of a run of streams, and their knowledge.
    pub(crate) stream_clients: Vec<StreamClient>,
    pub(crate) ledger: Ledger,
    /// When a client was last heard or did something.
    pub(crate) active_at: Time,
    /// A thread that is held up, and until which step, so that others get far ahead of it.
    pub(crate) held_up: (usize, u64),
    /// The time without an event after which the run counts as at rest.
    pub(crate) patience: Duration,
    /// Whether the mark of the last clean end may be missing because the disk failed.
    pub(crate) may_be_unmarked: bool,
    /// Whether the broker may end on its own.
    pub(crate) may_crash: bool,
    pub(crate) crashes_left: usize,
    pub(crate) disk_full: DiskFull,
    pub(crate) shadows: Shadows,
}

/// The state of a disk shortage.
#[derive(Debug, Default)]
pub(crate) struct DiskFull {
    /// Whether publishers waited for room at the last look.
    pub(crate) was_high: bool,
    /// The time of the last look.
    pub(crate) looked_at: Time,
    /// Looks in vain since publishers began to wait.
    pub(crate) looks: usize,
    /// The bytes in use at the last of them.
    pub(crate) used_bytes: u64,
    /// When other users freed all their space while publishers waited.
    pub(crate) ended_at: Option<Time>,
}

/// Chooses the moments at which a run is compared with its shadow, without a part in the choices of the run.
#[derive(Debug)]
pub(crate) struct Shadows {
    pub(crate) random: Random,
    /// Whether this run is compared at all.
    pub(crate) is_compared: bool,
}

impl Simulation {
    pub(crate) fn new(seed: u64, bug: Option<Bug>, trace: Option<TraceReader>) -> Simulation {
        let random = Random::new(seed);
        let workload = Workload::new(&random)
            .with_protocols(&Random::new(!seed))
            .with_streams(&Random::new(seed.swap_bytes()));
        let settings = Store::journal_settings(workload.file_blocks);
        let device = Device::new(SimDisk::default(), bug);
        let opened = Store::open(device, 0, workload.file_blocks, Definitions::default(), bug);
        let (store, _) = opened.expect("an empty disk that is well becomes a store");
        let shared = Rc::new(Shared::new(&workload, random, Trace::new(trace), bug, settings, store));
        let coroutines = coroutines(&shared);
        let mut model = Model::default();
        model.queues.clone_from(&workload.queues);
        let ledger = Ledger::new(&workload.streams);
        let crashes_left = workload.crashes;
        let (clients, held_up) = (Vec::new(), (0, 0));
        let patience = if workload.long_waits() { LONG_REST } else { REST };
        let (may_be_unmarked, may_crash) = (false, false);
        Simulation {
            shared,
            coroutines,
            clients,
            model,
            workload,
            stream_clients: Vec::new(),
            ledger,
            active_at: Time::default(),
            held_up,
            patience,
            may_be_unmarked,
            may_crash,
            crashes_left,
            disk_full: DiskFull::default(),
            shadows: Shadows::new(seed, bug),
        }
    }

    /// Connects a client of a random protocol of the run.
    pub(crate) fn connect(&mut self, actions: usize) {
        let (random, inside) = (&self.shared.random, self.workload.inside_share);
        if inside > 0 && random.chance(inside, 8) {
            return self.connect_inside(actions);
        }
        let channels = self.workload.channel_share;
        if channels > 0 && random.chance(channels, 8) {
            return self.connect_channels(actions);
        }
        let share = self.workload.nats_share;
        let name =
            if share > 0 && random.chance(share, 8) { config::Spoken::Nats } else { config::Spoken::Stomp };
        self.connect_by(name, actions);
    }

    /// Connects a STOMP client, which can do everything.
    pub(crate) fn connect_stomp(&mut self, actions: usize) {
        self.connect_by(config::Spoken::Stomp, actions);
    }

    fn connect_by(&mut self, name: config::Spoken, actions: usize) {
        // The intruder comes first, so that the requested client is the last in the list.
        self.connect_intruder(name, |session, _| match name {
            config::Spoken::Stomp => Box::new(StompClient::new(Version::V12)),
            config::Spoken::Nats => Box::new(NatsClient::new(session, true)),
            config::Spoken::Amqp091 | config::Spoken::Amqp10 => unreachable!("its clients have channels"),
        });
        let connection = self.open(name);
        let session = self.model.begin_session(connection.pipe);
        let random = &self.shared.random;
        let protocol: Box<dyn ClientProtocol> = match name {
            config::Spoken::Stomp => {
                let version = *random.pick(&[Version::V12, Version::V12, Version::V11]);
                Box::new(StompClient::new(version))
            }
            config::Spoken::Nats => Box::new(NatsClient::new(session, random.chance(3, 4))),
            config::Spoken::Amqp091 | config::Spoken::Amqp10 => unreachable!("its clients have channels"),
        };
        self.begin(Client::new(session, connection, protocol, actions));
    }

    /// Connects an internal client of the broker.
    fn connect_inside(&mut self, actions: usize) {
        let commands = Arc::new(CommandPipe::new(self.shared.bug));
        let connection = self.open(Spoken::Internal(Arc::clone(&commands)));
        let session = self.model.begin_session(connection.pipe);
        let may_be_refused = self.model.queues.iter().any(|queue| queue.refuses);
        let protocol = Box::new(InternalClient::new(commands, may_be_refused));
        self.begin(Client::new(session, connection, protocol, actions));
    }

    /// Connects a client with several channels, which divide its actions.
    fn connect_channels(&mut self, actions: usize) {
        let spoken = match self.shared.random.below(6) {
            0 | 1 => config::Spoken::Amqp10.into(),
            2 | 3 => config::Spoken::Amqp091.into(),
            _ => Spoken::Toy,
        };
        self.connect_intruder(spoken.clone(), |_, connection| channel_client(connection, &spoken, 1, false));
        let connection = self.open(spoken.clone());
        let channels = self.shared.random.between(2, CHANNELS_MAX);
        for channel in 1..=channels {
            let share = actions / channels + usize::from(channel <= actions % channels);
            self.open_channel(&connection, channel as u16, share);
        }
    }

    /// Opens a channel. The client of a connection's first channel logs in.
    pub(crate) fn open_channel(&mut self, connection: &Rc<Connection>, channel: u16, actions: usize) {
        let session = self.model.begin_session(connection.pipe);
        let is_first = connection.is_new();
        let spoken = self.shared.network.pipe(connection.pipe).spoken.clone();
        // A refusal by a full queue would end a transactional channel.
        let may_transact = !self.model.queues.iter().any(|queue| queue.refuses);
        // In AMQP 1.0 a transactional session can do everything else, too.
        let share = if matches!(spoken, Spoken::Product(config::Spoken::Amqp10)) { 2 } else { 1 };
        let is_transactional = may_transact && self.shared.random.chance(share, 3);
        let protocol = channel_client(connection, &spoken, channel, is_transactional);
        let mut client = Client::new(session, Rc::clone(connection), protocol, actions);
        if is_first {
            client.connect(&self.shared);
        }
        let random = &self.shared.random;
        let has_window = client.has_windows() && random.chance(1, 3);
        let window = has_window.then(|| random.between(1, self.workload.prefetch_max));
        client.open(&self.shared, &mut self.model, window);
        self.clients.push(client);
    }

    /// In some runs with slow logins, connects a client with a wrong password and no actions.
    fn connect_intruder(
        &mut self,
        spoken: impl Into<Spoken>,
        protocol: impl FnOnce(usize, &Rc<Connection>) -> Box<dyn ClientProtocol>,
    ) {
        if !self.workload.has_slow_logins || !self.shared.random.chance(1, 3) {
            return;
        }
        let connection = self.open(spoken);
        let session = self.model.begin_session(connection.pipe);
        let protocol = protocol(session, &connection);
        let mut client = Client::new(session, connection, protocol, 0);
        client.is_intruder = true;
        self.begin(client);
    }

    /// Opens a transport to a random cell.
    pub(super) fn open(&self, spoken: impl Into<Spoken>) -> Rc<Connection> {
        let shared = &self.shared;
        let pipe = shared.network.open(self.workload.window, spoken);
        let cell = shared.random.below(shared.cells.len());
        shared.cell(cell).arrivals.borrow_mut().push_back(pipe);
        Rc::new(Connection::new(pipe, cell))
    }

    /// Adds the only client of a connection and logs it in.
    fn begin(&mut self, mut client: Client) {
        client.connect(&self.shared);
        self.clients.push(client);
    }
}

/// A client for one channel, in the protocol of its connection.
fn channel_client(
    connection: &Rc<Connection>,
    spoken: &Spoken,
    channel: u16,
    is_transactional: bool,
) -> Box<dyn ClientProtocol> {
    match spoken {
        Spoken::Product(config::Spoken::Amqp10) => {
            Box::new(Amqp10Client::new(connection, channel, is_transactional))
        }
        Spoken::Product(_) => Box::new(AmqpClient::new(connection, channel, is_transactional)),
        Spoken::Toy | Spoken::Internal(_) => Box::new(ToyClient::new(channel)),
    }
}

/// The coroutines of the cells, then those of the store's threads.
pub(crate) fn coroutines(shared: &Rc<Shared>) -> Vec<Coroutine<(), (), ()>> {
    let cells = shared.cells.len();
    let coroutine = |id: usize| {
        let shared = Rc::clone(shared);
        let stack = DefaultStack::new(STACK_BYTES).expect("the system has memory for a stack");
        Coroutine::with_stack(stack, move |yielder, ()| match id.checked_sub(cells) {
            None => CellWorld::new(id, &shared, yielder).run(),
            Some(of_store) => StoreThread::new(of_store, &shared, yielder).run(),
        })
    };
    (0..cells + STORE_THREADS).map(coroutine).collect()
}
