//! Creates the state that a broker's cells share, from its configuration.

use std::fs::File;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::ArcSwap;
use imori_core::id::{QueueId, VhostId};
use imori_core::limits::SESSIONS_MAX;
use imori_core::name::Name;
use imori_core::outbound::OutboundLimits;
use imori_core::restore::{Awakening, Restored};
use imori_core::route::Table;
use imori_core::route::hamt::Seed;
use imori_core::topology::Topology;
use imori_store::definitions::Row;
use imori_store::journal::{Opened, Space};
use imori_store::settings::OnDamage;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::access::{Access, Objects};
use crate::bodies::Bodies;
use crate::clock::Clock;
use crate::config::{Config, DamagePolicy, ProtocolName, Service};
use crate::jwt::Issuer;
use crate::limits::{
    BODIES_SHARE_OF_MARK, INBOXES_MAX, QUEUES_MAX, UNSENT_SHARE_OF_MARK, WEBSOCKET_SLACK_BYTES,
};
use crate::login::{Authenticator, LoginCounts, Verifiers};
use crate::peers::admission::{Admission, AdmissionLimits, descriptors_max};
use crate::peers::log_limit::PeerLogLimit;
use crate::protocols::ProtocolSettings;
use crate::quotas::{Seats, StoredBytes, StreamRequestCounts};
use crate::run_facts::RunFacts;
use crate::settings::{Listener, Settings, client_address, mark_bytes};
use crate::shared::{Phase, Shared, table_limits};
use crate::slots::{SlotKey, Slots};
use crate::stall::Stalls;
use crate::stall::happenings::Happenings;
use crate::start::memory_limit::memory_limit;
use crate::start::small_disk::{SmallDisk, small_disk};
use crate::start::start_error::StartError;
use crate::store::rate_limited_log::RateLimitedLog;
use crate::store::{self, OpenedStore, Opening};
use crate::tls::{Handshakers, TlsAcceptor};
use crate::traces::{Observation, Traces};
use crate::turn::Memory;
use crate::websocket::UpgradePolicy;

/// The shared state, and the parts of the store that the start still needs.
pub(crate) struct Prepared {
    pub(crate) shared: Shared,
    pub(crate) opened: Opened<File>,
    pub(crate) awakenings: Vec<Awakening>,
}

/// Results of the first part of the start: sockets, certificates, and an authenticator other than the broker's own.
pub(crate) struct Begun {
    pub(crate) listeners: Vec<Listener>,
    pub(crate) tls: Option<Arc<TlsAcceptor>>,
    pub(crate) authenticator: Option<Arc<dyn Authenticator>>,
    pub(crate) server_id: String,
}

/// Opens the store and creates the shared state.
pub(crate) fn prepare(config: &Config, cells: usize, begun: Begun) -> Result<Prepared, StartError> {
    let Begun { listeners, tls, authenticator, server_id } = begun;
    let limits = &config.limits;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).map_err(|error| StartError::Random(error.to_string()))?;
    let mut table = Table::new(Seed(u64::from_ne_bytes(seed)), table_limits(limits));
    let memory_bytes = memory_limit();
    let mark_bytes = mark_bytes(memory_bytes, config);
    info!(memory_bytes, mark_bytes, "memory mark is set");
    let places = descriptors_max().min(config.limits.connections as usize);
    let (clock, memory) = (Clock::start(), Memory::new(mark_bytes).with_places(places));
    let mut objects = Objects::default();
    let OpenedStore { journal, checkpointer, pager, damages, opened, restore, vhosts, rows, lacks_objects } =
        open_store(config, cells, (&clock, &memory), &mut objects)?;
    let nameless = restore.vhosts().into_iter().filter(|id| !vhosts.iter().any(|(_, vhost)| vhost == id));
    let nameless: Vec<_> = nameless.map(|id| (Name::from(format!("vhost-{}", id.0).as_str()), id)).collect();
    for (name, _) in &nameless {
        warn!(vhost = %name, "the name of a vhost is lost; its queues are in one that is named by its number");
    }
    for (name, id) in vhosts.iter().chain(&nameless) {
        table.add_vhost(*id, name.clone());
    }
    nameless.iter().for_each(|(name, id)| objects.add_vhost(name, *id));
    let vhosts: Vec<_> = vhosts.into_iter().chain(nameless).collect();
    let issuer = Issuer::of(&config.jwt, clock).map_err(StartError::Keys)?;
    let access = Arc::new(Access::of(objects, rows, config.users.guest, issuer, clock));
    if lacks_objects {
        access.await_recovery();
    }
    let queues = Slots::new(QUEUES_MAX);
    let mut topology = Topology::new(table);
    let mut add_queue = |queue| {
        let SlotKey { slot, generation } = queues.insert(|_| queue)?;
        Some(QueueId { slot, generation })
    };
    let (awakenings, restored) = restore.finish(&mut topology, &mut add_queue);
    let stored_bytes = StoredBytes::default();
    for key in queues.keys() {
        let changed = queues.with(key, |queue| Some((queue.vhost(), queue.bytes_changed(1)?))).flatten();
        changed.into_iter().for_each(|(vhost, bytes)| stored_bytes.add(vhost, bytes, memory.gauge()));
    }
    if restored != Restored::default() {
        let Restored { queues, messages, passed_over } = restored;
        info!(queues, messages, passed_over, "queues are restored");
    }
    pager.leave(Space::new(config.journal.reserve_bytes.as_usize() as u64, journal.file_bytes()));
    let nats_vhost = vhosts.first().map_or(VhostId(0), |(_, vhost)| *vhost);
    let run = RunFacts { server_id, nats_vhost, memory_bytes };
    let shared = Shared {
        clock,
        settings: ArcSwap::from_pointee(settings(config.clone(), &run, listeners, tls)),
        run,
        table: Arc::new(ArcSwap::from_pointee(topology.table().clone())),
        topology: Mutex::new(topology),
        queues,
        journal,
        checkpointer,
        pager,
        damages,
        queue_memory_bytes: AtomicUsize::new(limits.queue_memory_bytes.as_usize()),
        stalls: Stalls::default(),
        happenings: Happenings::default(),
        cells: OnceLock::new(),
        admission: Admission::new(AdmissionLimits::of(limits)),
        peer_log_limit: PeerLogLimit::default(),
        refusal_log_limit: PeerLogLimit::default(),
        no_form_log: RateLimitedLog::default(),
        seats: Seats::default(),
        stored_bytes,
        stream_requests: StreamRequestCounts::default(),
        verifiers: Verifiers::new(authenticator.unwrap_or_else(|| Arc::clone(&access) as _)),
        handshakers: Handshakers::new(),
        observation: Observation::new(
            Traces::start(&config.traces, config.nats.server_name.to_string())
                .map_err(|error| StartError::Traces(error.to_string()))?,
        ),
        logins: LoginCounts::default(),
        access,
        bodies: Arc::new(Bodies::new(memory.gauge(), mark_bytes / BODIES_SHARE_OF_MARK)),
        memory,
        alarm: watch::Sender::new(false),
        phase: watch::Sender::new(Phase::Serving),
        finishing: watch::Sender::new(0),
        fault: Mutex::new(None),
        transfers: OnceLock::new(),
        gateway: OnceLock::new(),
        automation: Mutex::default(),
    };
    Ok(Prepared { shared, opened, awakenings })
}

fn open_store(
    config: &Config,
    cells: usize,
    (clock, memory): (&Clock, &Memory),
    objects: &mut Objects,
) -> Result<OpenedStore, StartError> {
    let file_bytes = config.journal.file_bytes.as_usize();
    warn_of_small_disk(config);
    let mut read = |rows: &[Row], vhosts: &[(Name, VhostId)]| {
        *objects = Objects::read(rows, vhosts);
        objects.policies_of_vhosts()
    };
    let opening = Opening {
        folder: &config.broker.data_dir,
        file_bytes: file_bytes as u64,
        reserve_bytes: config.journal.reserve_bytes.as_usize() as u64,
        files_max: usize::from(config.journal.files),
        on_damage: match config.journal.on_damage {
            DamagePolicy::Quarantine => OnDamage::Quarantine,
            DamagePolicy::Refuse => OnDamage::Refuse,
        },
        cells,
        vhosts: config.broker.vhosts.iter().map(Name::from).collect(),
        objects: &mut read,
        gauge: memory.gauge().clone(),
        now: clock.now(),
    };
    store::open(opening).map_err(|error| StartError::Store(Box::new(error)))
}

fn warn_of_small_disk(config: &Config) {
    match small_disk(config) {
        Ok(None) => {}
        Ok(Some(SmallDisk { folder, needed_bytes, available_bytes, advice })) => warn!(
            folder = %folder.display(), needed_bytes, available_bytes, %advice,
            "the disk is too small for the journal, publishers of persistent messages may have to wait for space"
        ),
        Err(error) => warn!(%error, "the space that is left for the data folder cannot be asked for"),
    }
}

/// Derives the settings in force from a configuration.
pub(crate) fn settings(
    config: Config,
    run: &RunFacts,
    listeners: Vec<Listener>,
    tls: Option<Arc<TlsAcceptor>>,
) -> Settings {
    let limits = &config.limits;
    let mark_bytes = mark_bytes(run.memory_bytes, &config);
    Settings {
        protocols: ProtocolSettings::of(&config, run, client_address(&listeners)),
        outbound: OutboundLimits {
            feed_bytes: limits.queue_feed_bytes.as_usize(),
            // One connection that does not read must not raise the alarm for all publishers.
            unsent_bytes_max: limits.unsent_bytes.as_usize().min(mark_bytes / UNSENT_SHARE_OF_MARK),
            inboxes_max: INBOXES_MAX,
            sessions_max: SESSIONS_MAX,
        },
        upgrade_policy: Arc::new(upgrade_policy(&config)),
        tls,
        listeners,
        config,
    }
}

fn upgrade_policy(config: &Config) -> UpgradePolicy {
    let is_on = |protocol: &ProtocolName| config.listeners.has(Service::Messages(*protocol));
    let message_bytes = config.limits.message_bytes.as_usize() + config.limits.header_bytes.as_usize();
    UpgradePolicy {
        protocols: ProtocolName::ALL.into_iter().filter(is_on).collect(),
        origins: config.ws.origins.clone(),
        host_names: config.broker.host_names.clone(),
        message_bytes_max: message_bytes as u64 + WEBSOCKET_SLACK_BYTES,
        login_timeout: config.limits.login_timeout_s.duration(),
    }
}
