//! The state that the sampler and the readers of the feed share.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::world::Counter;
use imori_server::AutomationState;
use imori_server::broker::Broker;
use imori_server::stall::Stall;
use serde::Serialize;
use serde_json::json;
use tokio::sync::{Notify, watch};

use super::connection_rows::ConnectionRows;
use super::history::{History, Window, Windows};
use super::queue_rows::QueueRows;
use super::sample::{Sample, Series};
use super::totals::Totals;
use crate::health::unreadiness;
use crate::http::may_monitor;
use crate::limits::{FEED_READERS_MAX, FEED_STALLS_MAX};
use crate::lock::lock;

/// A topic of the feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// The broker as a whole.
    Overview,
    /// The list of queues.
    Queues,
    /// The list of connections.
    Connections,
}

impl Topic {
    /// All topics.
    pub(crate) const ALL: [Topic; 3] = [Topic::Overview, Topic::Queues, Topic::Connections];

    /// The name in the API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Topic::Overview => "overview",
            Topic::Queues => "queues",
            Topic::Connections => "connections",
        }
    }
}

/// A set of topics.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Topics([bool; Topic::ALL.len()]);

impl Topics {
    /// The set with one more topic.
    #[must_use]
    pub fn with(mut self, topic: Topic) -> Topics {
        if let Some(has) = self.0.get_mut(topic as usize) {
            *has = true;
        }
        self
    }

    /// Whether the topic is in the set.
    pub(crate) fn has(self, topic: Topic) -> bool {
        self.0.get(topic as usize).copied().unwrap_or(false)
    }
}

/// What the sampler found last.
#[derive(Debug, Default, Clone)]
pub(crate) struct Latest {
    /// The number of the sample.
    pub(crate) number: u64,
    /// When the sample was taken, in milliseconds since the UNIX epoch.
    pub(crate) at: u64,
    /// The sample as JSON.
    sample: Arc<str>,
    memory_bytes: Option<u64>,
    totals: Arc<Totals>,
    /// Stalls that began or ended, oldest first, each with its number.
    pub(crate) stalls: Arc<VecDeque<(u64, Stall)>>,
}

/// The live view of the broker.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) queues: Mutex<QueueRows>,
    pub(crate) connections: Mutex<ConnectionRows>,
    history: Mutex<History>,
    latest: watch::Sender<Latest>,
    readers: AtomicUsize,
    followers: [AtomicUsize; Topic::ALL.len()],
    /// A reader needs a list that the last pass did not fill.
    pub(super) list_wanted: Notify,
}

/// A reader of the feed, counted until dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    live: Arc<Live>,
    topics: Topics,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.live.readers.fetch_sub(1, Ordering::Relaxed);
        for topic in Topic::ALL {
            self.live.count(self.topics, topic, |followers| followers.fetch_sub(1, Ordering::Relaxed));
        }
    }
}

impl Live {
    /// Nothing yet.
    pub(crate) fn new() -> Arc<Live> {
        Arc::new(Live {
            queues: Mutex::default(),
            connections: Mutex::default(),
            history: Mutex::default(),
            latest: watch::Sender::default(),
            readers: AtomicUsize::new(0),
            followers: Default::default(),
            list_wanted: Notify::new(),
        })
    }

    /// A window of the history.
    pub(crate) fn window(&self, window: Window) -> Windows {
        lock(&self.history).window(window)
    }

    /// Adds a reader of these topics; `None` if there are too many.
    pub(crate) fn follow(self: &Arc<Live>, topics: Topics) -> Option<Follower> {
        if self.readers.fetch_add(1, Ordering::Relaxed) >= FEED_READERS_MAX {
            self.readers.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        for topic in Topic::ALL {
            self.count(topics, topic, |followers| followers.fetch_add(1, Ordering::Relaxed));
        }
        let lacks_queues = topics.has(Topic::Queues) && !lock(&self.queues).is_filled();
        if lacks_queues || topics.has(Topic::Connections) && !lock(&self.connections).is_filled() {
            self.list_wanted.notify_one();
        }
        Some(Follower { live: Arc::clone(self), topics })
    }

    fn count(&self, topics: Topics, topic: Topic, change: impl Fn(&AtomicUsize) -> usize) {
        if let Some(followers) = self.followers.get(topic as usize).filter(|_| topics.has(topic)) {
            change(followers);
        }
    }

    /// Whether a reader follows the topic.
    pub(super) fn is_followed(&self, topic: Topic) -> bool {
        self.followers.get(topic as usize).is_some_and(|followers| followers.load(Ordering::Relaxed) > 0)
    }

    /// What the sampler finds, as it finds it.
    pub(crate) fn latest(&self) -> watch::Receiver<Latest> {
        self.latest.subscribe()
    }

    /// Adds a sample to the history.
    pub(super) fn keep(&self, at: u64, sample: Sample) {
        lock(&self.history).add(at, sample);
    }

    /// Adds a stall to the samples before the last one.
    pub(super) fn keep_stall(&self, from: u64, to: u64) {
        lock(&self.history).note_stall(from, to);
    }

    /// Shows readers a new sample.
    pub(super) fn show(&self, at: u64, sample: Sample, totals: &Arc<Totals>, stalls: &[Stall]) {
        self.latest.send_modify(|latest| {
            latest.number += 1;
            latest.at = at;
            latest.sample = sample.to_json().into();
            latest.memory_bytes = sample.get(Series::MemoryBytes).map(|bytes| bytes as u64);
            latest.totals = Arc::clone(totals);
            if !stalls.is_empty() {
                let all = Arc::make_mut(&mut latest.stalls);
                for stall in stalls {
                    let number = all.back().map_or(1, |(number, _)| number + 1);
                    all.push_back((number, *stall));
                }
                while all.len() > FEED_STALLS_MAX {
                    all.pop_front();
                }
            }
        });
    }

    /// Tells readers that lists were filled.
    pub(super) fn show_lists(&self) {
        self.latest.send_modify(|_| ());
    }

    /// Forgets the lists without a follower.
    pub(super) fn forget_lists(&self) {
        if !self.is_followed(Topic::Queues) {
            lock(&self.queues).clear();
        }
        if !self.is_followed(Topic::Connections) {
            lock(&self.connections).clear();
        }
    }
}

/// A reason for publishers to wait, or for an operator to act.
#[derive(Debug, Serialize)]
struct Alarm {
    kind: &'static str,
    text: String,
}

impl Latest {
    /// The data of an event with the overview of a user, as JSON: the sample, the numbers of `/v1/overview`, and the
    /// alarms. `started` is when the broker began.
    pub(crate) fn overview(&self, broker: &Broker, identity: &Identity, started: u64) -> String {
        let sees_all = may_monitor(identity);
        let (table, totals) = (broker.table(), &self.totals);
        let vhosts: Vec<VhostId> = broker.vhosts(identity).into_iter().map(|(_, vhost)| vhost).collect();
        let messages = vhosts.iter().filter_map(|vhost| totals.messages_by_vhost.get(vhost));
        let (ready, unsettled) =
            messages.fold((0, 0), |(ready, unsettled), of| (ready + of.ready, unsettled + of.unsettled));
        let of_user = || totals.clients_by_user.get(identity.user.to_string().as_str()).copied();
        let clients = if sees_all { totals.clients } else { of_user().unwrap_or_default() };
        let (memory, journal) = (broker.memory_figures(), broker.journal_figures());
        let totals = json!({
            "uptime_ms": self.at.saturating_sub(started),
            "connections": clients.connections,
            "sessions": clients.sessions,
            "readers": clients.readers,
            "vhosts": vhosts.len(),
            "exchanges": vhosts.iter().map(|vhost| table.exchanges(*vhost).count()).sum::<usize>(),
            "queues": vhosts.iter().map(|vhost| table.queue_count(*vhost)).sum::<usize>(),
            "ready": ready,
            "unsettled": unsettled,
            "published": broker.counted(Counter::Published),
            "memory_bytes": self.memory_bytes,
            "memory_alarm": memory.is_alarmed,
            "disk_free_bytes": journal.free_bytes,
            "disk_alarm": journal.is_room_scarce,
        });
        let (at, sample, alarms) = (self.at, &self.sample, json!(alarms(broker, sees_all)));
        format!("{{\"at\":{at},\"sample\":{sample},\"totals\":{totals},\"alarms\":{alarms}}}")
    }
}

/// The present alarms. The texts of some name queues, so only users who may monitor the broker see those.
fn alarms(broker: &Broker, sees_all: bool) -> Vec<Alarm> {
    let memory = broker.memory_figures();
    let journal = broker.journal_figures();
    let mut alarms = Vec::new();
    if memory.is_alarmed {
        let (bytes, mark) = (memory.waiting_bytes, memory.mark_bytes);
        let text = format!("publishers wait for memory: messages have {bytes} bytes, of {mark} allowed");
        alarms.push(Alarm { kind: "memory", text });
    }
    if memory.is_disk_alarmed || journal.is_space_low {
        let free = journal.free_bytes.map_or_else(String::new, |bytes| format!(": {bytes} bytes are free"));
        alarms.push(Alarm { kind: "disk", text: format!("publishers wait for disk space{free}") });
    }
    if let Some(ailment) = unreadiness(broker, sees_all) {
        alarms.push(Alarm { kind: ailment.name(), text: ailment.text() });
    }
    if let AutomationState::Away(reason) = broker.automation_state() {
        alarms.push(Alarm { kind: "automation", text: reason });
    }
    if broker.settings().is_certificate_refused() {
        let text = "a renewed certificate cannot be used; the one before is in force";
        alarms.push(Alarm { kind: "certificate", text: String::from(text) });
    }
    alarms
}
