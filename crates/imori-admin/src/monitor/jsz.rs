//! `/jsz`: streams and their consumers by vhost, which is an account in nats-server's words.

use imori_core::confirm::Level;
use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::stream::Stream;
use imori_nats::jetstream::account::ApiStats;
use imori_nats::jetstream::stream_info::ClusterInfo;
use imori_nats::{Details, consumer_info, stream_info};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::monitor_state::MonitorState;
use super::query::{Page, Parameters};
use super::wording::timestamp;
use crate::http::Names;
use crate::limits::MONITOR_QUEUES_MAX;

/// The response.
#[derive(Debug, Serialize)]
pub(super) struct Jsz<'a> {
    #[serde(flatten)]
    stats: Stats,
    server_id: &'a str,
    now: String,
    config: JetStreamConfig,
    limits: Nothing,
    streams: u64,
    consumers: u64,
    messages: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    account_details: Vec<Account>,
    total: usize,
}

/// An empty object.
#[derive(Debug, Serialize)]
struct Nothing {}

/// What `/varz` says about streams.
#[derive(Debug, Serialize)]
pub(super) struct JetStreamVarz {
    config: JetStreamConfig,
    stats: Stats,
}

/// The room for streams.
#[derive(Debug, Serialize)]
struct JetStreamConfig {
    /// Bytes of messages in memory above which publishers wait.
    max_memory: usize,
    /// Bytes of streams on the disk, and what is free there; -1 before the first look at the disk.
    max_storage: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    store_dir: String,
    /// The broker confirms a message of a stream once it is on the device.
    sync_always: bool,
}

/// Usage by streams.
#[derive(Debug, Default, Clone, Serialize)]
struct Stats {
    memory: u64,
    storage: u64,
    /// Bytes that the limits of streams in memory add up to.
    reserved_memory: u64,
    reserved_storage: u64,
    accounts: usize,
    ha_assets: usize,
    api: ApiStats,
}

/// The streams of a vhost.
#[derive(Debug, Serialize)]
struct Account {
    name: String,
    id: String,
    #[serde(flatten)]
    stats: Stats,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stream_detail: Vec<Value>,
}

/// The parameters of `/jsz`. Those about clusters are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JszQuery {
    /// The only vhost to show; empty for all.
    account: String,
    /// Shows each vhost.
    pub has_accounts: bool,
    /// Shows the streams of each vhost.
    pub has_streams: bool,
    /// Shows the consumers of each stream.
    pub has_consumers: bool,
    has_config: bool,
    page: Page,
}

impl JszQuery {
    /// Parses the parameters, or returns what is wrong with them.
    pub fn read(parameters: &Parameters) -> Result<JszQuery, String> {
        let account = parameters.text("acc").to_owned();
        let has_consumers = parameters.flag("consumers")?;
        let has_streams = parameters.flag("streams")? || has_consumers;
        for of_clusters in ["direct-consumers", "leader-only", "raft", "stream-leader-only"] {
            parameters.flag(of_clusters)?;
        }
        Ok(JszQuery {
            has_accounts: parameters.flag("accounts")? || has_streams && account.is_empty(),
            account,
            has_streams,
            has_consumers,
            has_config: parameters.flag("config")?,
            page: parameters.page(MONITOR_QUEUES_MAX)?,
        })
    }
}

/// Sums over streams.
#[derive(Debug, Default)]
struct Sums {
    stats: Stats,
    streams: u64,
    consumers: u64,
    messages: u64,
    bytes: u64,
}

impl Sums {
    fn add(&mut self, queue: &Queue, stream: &Stream) {
        let (index, consumers) = (stream.index(), stream.consumers().count() as u64);
        let reserved = queue.declared().length_bytes_max.unwrap_or(0);
        let is_memory = queue.level() == Level::Memory;
        let Stats { memory, storage, reserved_memory, reserved_storage, .. } = &mut self.stats;
        let (used, limit) = if is_memory { (memory, reserved_memory) } else { (storage, reserved_storage) };
        *used += index.bytes();
        *limit = limit.saturating_add(reserved);
        self.streams += 1;
        self.consumers += consumers;
        self.messages += index.len();
        self.bytes += index.bytes();
    }

    fn add_all(&mut self, more: &Sums) {
        let (own, stats) = (&mut self.stats, &more.stats);
        own.memory += stats.memory;
        own.storage += stats.storage;
        own.reserved_memory = own.reserved_memory.saturating_add(stats.reserved_memory);
        own.reserved_storage = own.reserved_storage.saturating_add(stats.reserved_storage);
        self.streams += more.streams;
        self.consumers += more.consumers;
        self.messages += more.messages;
        self.bytes += more.bytes;
    }
}

impl Jsz<'_> {
    /// The streams that are asked for; without `names` only their sums.
    pub(super) fn of<'a>(state: &'a MonitorState, query: &JszQuery, names: Names) -> Jsz<'a> {
        let vhosts = vhosts(state);
        let is_named = |name: &Name| name.as_bytes() == query.account.as_bytes();
        let has_named = vhosts.iter().any(|(name, _)| is_named(name));
        let (from, to) = (query.page.offset, query.page.offset.saturating_add(query.page.limit));
        let (mut sums, mut accounts, mut left) = (Sums::default(), Vec::new(), MONITOR_QUEUES_MAX);
        for (index, (name, vhost)) in vhosts.iter().enumerate() {
            let of_vhost = vhost_sums(state, *vhost);
            sums.add_all(&of_vhost);
            let is_shown = match has_named {
                true => is_named(name),
                false => query.has_accounts && (from..to).contains(&index),
            };
            if is_shown && names == Names(true) {
                let details =
                    if query.has_streams { details(state, *vhost, query, left) } else { Vec::new() };
                left -= details.len();
                accounts.push(Account {
                    name: name.to_string(),
                    id: name.to_string(),
                    stats: Stats { api: api(state, Some(*vhost)), ..of_vhost.stats },
                    stream_detail: details,
                });
            }
        }
        let Sums { stats, streams, consumers, messages, bytes } = sums;
        let stats = Stats { accounts: vhosts.len(), api: api(state, None), ..stats };
        Jsz {
            server_id: state.broker.server_id(),
            now: timestamp(state.broker.now()),
            config: configuration(state, &stats, names),
            stats,
            limits: Nothing {},
            streams,
            consumers,
            messages,
            bytes,
            account_details: accounts,
            total: vhosts.len(),
        }
    }
}

impl JetStreamVarz {
    /// The use of streams now.
    pub(super) fn of(state: &MonitorState) -> JetStreamVarz {
        let (mut sums, vhosts) = (Sums::default(), vhosts(state));
        vhosts.iter().for_each(|(_, vhost)| sums.add_all(&vhost_sums(state, *vhost)));
        let stats = Stats { accounts: vhosts.len(), api: api(state, None), ..sums.stats };
        JetStreamVarz { config: configuration(state, &stats, Names(false)), stats }
    }
}

fn vhosts(state: &MonitorState) -> Vec<(Name, VhostId)> {
    let table = state.broker.table();
    let mut vhosts: Vec<_> = table.vhosts().map(|(id, name)| (name.clone(), id)).collect();
    vhosts.sort_unstable();
    vhosts
}

fn api(state: &MonitorState, vhost: Option<VhostId>) -> ApiStats {
    let requests = state.broker.stream_requests(vhost);
    ApiStats { total: requests.total, errors: requests.errors, ..ApiStats::default() }
}

fn configuration(state: &MonitorState, stats: &Stats, Names(are_shown): Names) -> JetStreamConfig {
    let free = state.broker.journal_figures().free_bytes;
    let room = free.and_then(|free| i64::try_from(free.saturating_add(stats.storage)).ok());
    JetStreamConfig {
        max_memory: state.broker.memory_figures().mark_bytes,
        max_storage: room.unwrap_or(-1),
        store_dir: if are_shown {
            state.broker.store_facts().folder.display().to_string()
        } else {
            String::new()
        },
        sync_always: true,
    }
}

fn vhost_sums(state: &MonitorState, vhost: VhostId) -> Sums {
    let mut sums = Sums::default();
    for (_, id) in state.broker.table().queues(vhost) {
        state.broker.with_queue(id, |queue| {
            if let Some(stream) = queue.stream() {
                sums.add(queue, stream);
            }
        });
    }
    sums
}

/// Up to `max` streams of a vhost by name.
fn details(state: &MonitorState, vhost: VhostId, query: &JszQuery, max: usize) -> Vec<Value> {
    let table = state.broker.table();
    let mut queues: Vec<_> = table.queues(vhost).collect();
    queues.sort_unstable();
    let detail = |id| state.broker.with_queue(id, |queue| detail(state, queue, query)).flatten();
    queues.into_iter().filter_map(|(_, id)| detail(id)).take(max).collect()
}

fn detail(state: &MonitorState, queue: &Queue, query: &JszQuery) -> Option<Value> {
    let (stream, now) = (queue.stream()?, state.broker.now());
    let info = stream_info(queue, Details::default(), now);
    let leader = state.broker.settings().config().nats.server_name.clone();
    let cluster = ClusterInfo { leader, ..ClusterInfo::default() };
    let mut detail = Map::new();
    let mut put = |name: &str, value: Value| detail.insert(name.to_owned(), value);
    put("name", json!(info.config.name));
    put("created", json!(info.created));
    put("cluster", json!(cluster));
    if query.has_config {
        put("config", json!(info.config));
    }
    put("state", json!(info.state));
    if query.has_consumers {
        let consumers = stream.consumers().map(|consumer| {
            let mut shown = json!(consumer_info(&info.config.name, consumer, now));
            if let (false, Some(fields)) = (query.has_config, shown.as_object_mut()) {
                fields.remove("config");
            }
            shown
        });
        put("consumer_detail", consumers.collect());
    }
    Some(Value::Object(detail))
}
