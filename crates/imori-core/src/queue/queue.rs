//! The state of a queue, and the path of a message through it.
//!
//! ```text
//!              publish                      take                accept
//!  publisher ──┬──────────► ready ──────────────────► unsettled ───────► gone
//!              └► delayed ──►│   ▲                      │     │
//!      expired, overflow    │   └──────── release ─────┘     │ reject,
//!                           ▼                                ▼ delivery limit
//!                       dead letter, or gone ◄───────────────┘
//!
//! While the disk is full, a dead letter stays unsettled and no consumer holds it (`die.rs`).
//! ```

use std::mem::size_of;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::dedup::Dedup;
use super::pending_dead_letters::PendingDeadLetters;
use super::settings::{Governed, QueueSettings};
use super::waiting_publishers::WaitingPublishers;
use crate::activity::{QueueActivity, WaitSample};
use crate::confirm::{Level, Lsn};
use crate::consumers::{ConsumeRefusal, Consumers, Selection};
use crate::delivery::{DeliveryCount, EarlierDeliveries, RecordRef};
use crate::entries::{Delayed, Entry, LiveRecords, PageId, Pages, Ready};
use crate::features::QueueFeatures;
use crate::id::{ConnectionId, DurableQueueId, Reader, VhostId};
use crate::limits::DEDUP_BYTES_MAX;
use crate::memory::Gauge;
use crate::name::Name;
use crate::policy::QueueKind;
use crate::stream::Stream;
use crate::time::Time;

/// Unsettled deliveries for which a queue always keeps room; that room is not charged.
pub(crate) const ROOM_KEPT: usize = 64;

/// Bytes charged for the room of one unsettled delivery: a hash table is at most seven eighths full.
pub(crate) const ROOM_CHARGE: usize = (size_of::<(u64, Entry)>() + 1) * 8 / 7;

/// The identity and safety of a queue that outlives the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// The queue's id in the store.
    pub id: DurableQueueId,
    /// The level of safety at which persistent messages are confirmed.
    pub level: Level,
}

/// A queue; the module comment has its state diagram.
#[derive(Debug)]
pub struct Queue {
    pub(crate) vhost: VhostId,
    pub(crate) name: Name,
    /// The settings in effect.
    pub(crate) settings: QueueSettings,
    /// The policies that apply, and the declaration that they changed; `None` without policies.
    pub(crate) governed: Option<Box<Governed>>,
    pub(crate) durability: Option<Durability>,
    /// The optional parts in use, kept beside the fields that every message reads.
    pub(crate) features: QueueFeatures,
    /// Delayed messages; few queues have any.
    pub(crate) delayed: Option<Box<Delayed>>,
    pub(crate) dedup: Option<Box<Dedup>>,
    /// The index, consumers and requests of a stream, whose messages are those in `ready`.
    pub(crate) stream: Option<Box<Stream>>,
    pub(crate) ready: Ready,
    pub(crate) unsettled: HashMap<u64, Entry, FixedState>,
    /// Bytes of the bodies of unsettled messages.
    unsettled_bytes: u64,
    /// Bytes of the bodies of all messages, as last reported to the vhost.
    bytes_told: u64,
    /// Unsettled messages that died and stay until the disk has room for them.
    pub(crate) pending_dead_letters: Option<Box<PendingDeadLetters>>,
    /// The pages of the queue on disk.
    pub(crate) pages: Pages,
    /// Number of pages being written from entries that left memory.
    pub(crate) writing: usize,
    /// Number of pages being written as copies: the queue also has their entries elsewhere.
    pub(crate) copying: usize,
    /// Publishers that wait until the queue is shorter; `Some` while it throttles.
    pub(crate) waiting_publishers: Option<Box<WaitingPublishers>>,
    /// Connections that wait to get one message from a page on disk; few queues have any.
    #[expect(clippy::box_collection, reason = "nearly every queue has none, and a box is a word")]
    pub(crate) askers: Option<Box<Vec<ConnectionId>>>,
    /// Consumers that give up their credit once no message is left for them; few queues have any.
    #[expect(clippy::box_collection, reason = "nearly every queue has none, and a box is a word")]
    pub(crate) draining: Option<Box<Vec<Reader>>>,
    /// When to try again to write pages.
    pub(crate) page_retry: Option<Time>,
    /// The records of messages that are in no page.
    pub(crate) live_records: LiveRecords,
    /// The highest record that a purge named without knowing its messages.
    pub(crate) purged_through: Lsn,
    /// Earlier deliveries of messages that have not been read since the start, by record.
    pub(crate) counts: HashMap<Lsn, EarlierDeliveries, FixedState>,
    pub(crate) consumers: Consumers,
    /// When seekers resume, if they stopped to let others have the queue.
    pub(crate) seek_again: Option<Time>,
    /// Pages that seekers need next, each with its priority.
    pub(crate) sought: Vec<(u8, PageId)>,
    /// Pages were read for seekers.
    pub(crate) has_sought: bool,
    /// The publisher excluded by no-local.
    pub(crate) no_local: Option<Name>,
    /// One above the sequence number of the last message that became ready.
    pub(crate) ready_end: u64,
    pub(crate) is_retired: bool,
    pub(crate) next_sequence: u64,
    pub(crate) activity: QueueActivity,
    /// The waiting message that is sampled to measure waiting time.
    pub(crate) wait_sample: WaitSample,
    pub(crate) last_used: Time,
    /// Number of unsettled deliveries that are charged for room.
    pub(crate) room_charged: usize,
    /// The earliest wake-up that was requested and has not come.
    pub(crate) wake_up: Option<Time>,
    pub(crate) gauge: Gauge,
}

impl Queue {
    /// Creates an empty queue, which charges waiting messages to `gauge`.
    pub fn new(vhost: VhostId, name: Name, settings: QueueSettings, gauge: Gauge, now: Time) -> Queue {
        let stream = (settings.kind == QueueKind::Stream).then(|| {
            let settings = settings.stream.as_deref().cloned().unwrap_or_default();
            Box::new(Stream::new(settings, now))
        });
        let mut queue = Queue {
            vhost,
            name,
            features: QueueFeatures::default(),
            durability: None,
            ready: Ready::new(settings.priority_max),
            delayed: None,
            dedup: settings
                .dedup_window
                .map(|window| Box::new(Dedup::new(window, DEDUP_BYTES_MAX, gauge.clone()))),
            unsettled: HashMap::default(),
            unsettled_bytes: 0,
            bytes_told: 0,
            pending_dead_letters: None,
            pages: Pages::default(),
            writing: 0,
            copying: 0,
            waiting_publishers: None,
            askers: None,
            draining: None,
            page_retry: None,
            live_records: LiveRecords::default(),
            purged_through: Lsn::NONE,
            counts: HashMap::default(),
            consumers: Consumers::new(settings.is_single_active),
            seek_again: None,
            sought: Vec::new(),
            has_sought: false,
            no_local: settings.no_local().map(Name::new),
            ready_end: 1,
            settings,
            governed: None,
            is_retired: false,
            next_sequence: stream.as_ref().map_or(1, |stream| stream.visible_end),
            stream,
            activity: QueueActivity::default(),
            wait_sample: WaitSample::default(),
            last_used: now,
            room_charged: 0,
            wake_up: None,
            gauge,
        };
        queue.renew_features();
        queue
    }

    /// Makes the queue outlive the broker. To be called once, before it has any message.
    pub fn make_durable(&mut self, id: DurableQueueId) {
        self.durability = Some(Durability { id, level: self.settings.level.unwrap_or(Level::Disk) });
    }

    /// The queue's identity in the store and its level of safety; `None` if it ends with the broker.
    pub fn durability(&self) -> Option<Durability> {
        self.durability
    }

    /// The level of safety that the queue's messages reach.
    pub fn level(&self) -> Level {
        self.durability.map_or(Level::Memory, |durability| durability.level)
    }

    /// The vhost of the queue.
    pub fn vhost(&self) -> VhostId {
        self.vhost
    }

    /// The queue's name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The settings in effect.
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// Counters of what happened to the queue's messages.
    pub fn activity(&self) -> &QueueActivity {
        &self.activity
    }

    /// Bytes of the bodies of ready messages.
    pub fn ready_bytes(&self) -> u64 {
        self.ready.body_bytes()
    }

    /// Bytes of the bodies of all messages: ready, delayed and unsettled.
    pub fn body_bytes(&self) -> u64 {
        let delayed = self.delayed.as_ref().map_or(0, |delayed| delayed.body_bytes());
        self.ready.body_bytes() + delayed + self.unsettled_bytes
    }

    /// Whether the queue needs no follow-up: no message is ready, fewer than `least` bytes are unreported to
    /// its vhost, and none of [`QueueFeatures::OF_FOLLOW_UPS`] is in use.
    #[inline]
    pub(crate) fn is_at_rest(&self, least: u64) -> bool {
        self.debug_features();
        !self.features.any(QueueFeatures::OF_FOLLOW_UPS)
            && self.ready.is_empty()
            && self.unsettled_bytes.abs_diff(self.bytes_told) < least
    }

    /// Reports the change of [`Queue::body_bytes`] since the last report; `None` if it is less than `least`.
    #[inline]
    pub fn bytes_changed(&mut self, least: u64) -> Option<i64> {
        let bytes = self.body_bytes();
        if bytes.abs_diff(self.bytes_told) < least {
            return None;
        }
        let before = std::mem::replace(&mut self.bytes_told, bytes);
        i64::try_from(i128::from(bytes) - i128::from(before)).ok()
    }

    /// The body bytes as last reported by [`Queue::bytes_changed`].
    pub fn bytes_told(&self) -> u64 {
        self.bytes_told
    }

    /// Adds an unsettled delivery.
    #[inline]
    pub(crate) fn give_out(&mut self, entry: Entry) {
        self.unsettled_bytes += entry.body_bytes();
        self.consumers.note_out(&entry.message.view());
        self.unsettled.insert(entry.envelope.sequence, entry);
    }

    /// Removes an unsettled delivery; `None` if there is none with this number.
    #[inline]
    pub(crate) fn take_back(&mut self, sequence: u64) -> Option<Entry> {
        let entry = self.unsettled.remove(&sequence)?;
        self.unsettled_bytes -= entry.body_bytes();
        self.consumers.note_back(&entry.message.view());
        Some(entry)
    }

    /// Number of ready messages.
    pub fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Whether the first ready message is in memory.
    pub fn has_front(&self) -> bool {
        self.ready.has_front()
    }

    /// Number of delayed messages.
    pub fn delayed_len(&self) -> usize {
        self.delayed.as_ref().map_or(0, |delayed| delayed.len())
    }

    /// Number of unsettled deliveries.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled.len()
    }

    /// Number of unsettled messages that are dead letters without room on the disk.
    pub fn pending_dead_letters_len(&self) -> usize {
        self.pending_dead_letters.as_ref().map_or(0, |pending| pending.len())
    }

    /// Number of consumers, those of a stream included.
    pub fn consumers_len(&self) -> usize {
        self.consumers.len() + self.stream.as_ref().map_or(0, |stream| stream.consumers.len())
    }

    /// The queue's consumers, in no particular order.
    pub fn consumers(&self) -> impl Iterator<Item = Reader> {
        self.consumers.readers()
    }

    /// Whether `connection` may use the queue; an exclusive queue is open to its owner only.
    pub fn is_open_to(&self, connection: ConnectionId) -> bool {
        self.settings.exclusive_to.is_none_or(|owner| owner == connection)
    }

    /// The de-duplication window, if the queue has one.
    pub fn dedup(&mut self) -> Option<&mut Dedup> {
        self.dedup.as_deref_mut()
    }

    /// The lowest record that the de-duplication window needs, as [`Dedup::floor`], or the state of a stream.
    pub fn dedup_floor(&mut self, now: Time) -> Option<Lsn> {
        let ids = self.dedup.as_mut().and_then(|dedup| dedup.floor(now));
        [ids, self.stream_floor()].into_iter().flatten().min()
    }

    /// Checks whether a consumer may be added now.
    ///
    /// # Errors
    /// [`ConsumeRefusal`] says why not.
    pub fn admit_consumer(&self, is_exclusive: bool) -> Result<(), ConsumeRefusal> {
        if self.is_retired { Err(ConsumeRefusal::Retired) } else { self.consumers.admit(is_exclusive) }
    }

    /// Adds an admitted consumer. With `is_exclusive` it has the queue for itself.
    pub fn add_consumer(&mut self, reader: Reader, priority: i32, is_exclusive: bool, now: Time) {
        self.last_used = now;
        self.consumers.add(reader, priority, is_exclusive, None);
        self.renew_features();
    }

    /// Adds an admitted consumer that selects or browses instead of taking messages in order.
    pub fn add_seeker(
        &mut self,
        reader: Reader,
        priority: i32,
        is_exclusive: bool,
        selection: Selection,
        now: Time,
    ) {
        self.last_used = now;
        self.consumers.add(reader, priority, is_exclusive, Some(selection));
        self.renew_features();
    }

    /// Removes a consumer; returns whether the queue has to be deleted with it. Releasing the consumer's
    /// unsettled deliveries is a separate step.
    pub fn remove_consumer(&mut self, reader: Reader, now: Time) -> bool {
        self.last_used = now;
        let was_consumer = self.consumers.remove(reader);
        if let Some(stream) = &mut self.stream {
            stream.cursors.remove(reader);
        }
        self.renew_features();
        was_consumer && self.settings.is_auto_delete && self.consumers.is_empty()
    }

    /// Notes that a consumer has room for deliveries again.
    pub fn wake(&mut self, reader: Reader) {
        self.consumers.wake(reader);
    }

    /// Notes that a consumer gives up its credit once no message is left for it.
    pub(crate) fn drain(&mut self, reader: Reader) {
        self.features.add(QueueFeatures::DRAINING);
        let draining = self.draining.get_or_insert_default();
        if !draining.contains(&reader) {
            draining.push(reader);
        }
    }

    /// Ends the drains of consumers for which no message is left. `end` gets the consumer, the queue's name
    /// and whether nothing is left for that consumer, and returns whether the drain is over.
    #[inline]
    pub(crate) fn end_drains(&mut self, end: impl FnMut(Reader, &Name, bool) -> bool) {
        if self.features.any(QueueFeatures::DRAINING) {
            self.end_some_drains(end);
        }
    }

    #[inline(never)]
    fn end_some_drains(&mut self, mut end: impl FnMut(Reader, &Name, bool) -> bool) {
        let Some(mut draining) = self.draining.take() else { return };
        draining.retain(|reader| {
            let is_all = self.ready.is_empty()
                || self.is_held_up()
                || !self.consumers.may_be_served(*reader)
                || self.consumers.has_looked_through(*reader, self.ready_end)
                || self
                    .stream
                    .as_ref()
                    .is_some_and(|stream| stream.cursors.is_at(*reader, stream.visible_end));
            !end(*reader, &self.name, is_all)
        });
        self.draining = Some(draining).filter(|draining| !draining.is_empty());
        self.renew_features();
    }

    /// Notes that the queue was declared again, which restarts its idle time.
    pub fn touch(&mut self, now: Time) {
        self.last_used = now;
    }

    /// Refuses consumers from now on, as the queue is about to be deleted. Other cells may hold its id
    /// between the check for consumers and the deletion.
    pub fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Whether the queue was unused for so long that it has to be deleted.
    pub fn is_idle_too_long(&self, now: Time) -> bool {
        self.idle_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// Returns the next wake-up to request; `None` if one that is early enough was requested before.
    pub fn new_wake_up(&mut self) -> Option<Time> {
        let messages = match self.stream.is_some() {
            true => self.next_to_age(),
            false => {
                let deadline = |entry: &Entry| entry.envelope.deadline(self.settings.message_ttl);
                self.ready.fronts().filter_map(deadline).min()
            }
        };
        let due = self.delayed.as_ref().and_then(|delayed| delayed.next_due());
        let forgotten = self.dedup.as_ref().and_then(|dedup| dedup.end());
        // While the queue is held up, no message expires before the pending dead letters leave.
        let messages = messages.filter(|_| !self.is_held_up());
        let retry = self.pending_dead_letters.as_ref().map(|pending| pending.retry());
        let stream = self.stream.as_ref().and_then(|stream| match stream.is_busy {
            true => Some(Time(0)),
            false => stream.next_due(),
        });
        let wants = [messages, due, forgotten, self.idle_deadline(), retry, self.seek_again, stream];
        let next = wants.into_iter().flatten().min()?;
        if self.wake_up.is_some_and(|asked| asked <= next) {
            return None;
        }
        self.wake_up = Some(next);
        Some(next)
    }

    /// Notes that a wake-up has come. A wake-up that an earlier one superseded changes nothing; otherwise
    /// each of them would request another, forever.
    pub fn woken(&mut self, now: Time) {
        self.wake_up.take_if(|asked| *asked <= now);
        if let Some(dedup) = &mut self.dedup {
            dedup.forget_old(now);
        }
    }

    fn idle_deadline(&self) -> Option<Time> {
        // Pending dead letters have to leave before the queue does.
        let is_unused = self.consumers.is_empty() && self.pending_dead_letters.is_none();
        let expires = self.settings.expires.filter(|_| is_unused)?;
        Some(self.last_used.after(expires)).filter(|deadline| *deadline < Time::NEVER)
    }

    /// The record of a message in this queue, if the queue is durable and the message has one.
    pub(crate) fn record_ref(&self, lsn: Lsn) -> Option<RecordRef> {
        let Durability { id, .. } = self.durability.filter(|_| lsn != Lsn::NONE)?;
        Some(RecordRef { queue: id, lsn })
    }

    pub(crate) fn count(&self, entry: &Entry, failures: u32) -> Option<DeliveryCount> {
        let record_ref = self.record_ref(entry.envelope.lsn)?;
        let is_rejected = entry.envelope.is_rejected;
        Some(DeliveryCount { record_ref, failures, is_redelivered: true, is_rejected })
    }
}

impl Queue {
    /// Recomputes the set of features in use.
    pub(crate) fn renew_features(&mut self) {
        self.features = self.features_in_use();
    }

    /// Recomputes the set if a feature with follow-ups is in it, which may be out of use by now.
    #[inline]
    pub(crate) fn renew_features_in_use(&mut self) {
        if self.features.any(QueueFeatures::OF_FOLLOW_UPS) {
            self.renew_features();
        }
    }

    /// Asserts, in debug builds, that the set has every feature in use.
    #[inline]
    pub(crate) fn debug_features(&self) {
        debug_assert!(
            self.features.has_all(self.features_in_use()),
            "{:?} miss some of {:?}",
            self.features,
            self.features_in_use()
        );
    }

    fn features_in_use(&self) -> QueueFeatures {
        let has_pages =
            !self.pages.is_at_rest() || self.writing + self.copying > 0 || self.page_retry.is_some();
        let is_sought = self.seek_again.is_some() || self.has_sought || !self.sought.is_empty();
        let has_counts = self.settings.delivery_limit.is_some() || !self.counts.is_empty();
        let mut features = QueueFeatures::default();
        features.add_if(QueueFeatures::DELAYED, self.delayed.is_some());
        features.add_if(QueueFeatures::DEDUP, self.dedup.is_some());
        features.add_if(QueueFeatures::PENDING_DEAD_LETTERS, self.pending_dead_letters.is_some());
        features.add_if(QueueFeatures::PAGES, has_pages);
        features.add_if(QueueFeatures::THROTTLE, self.waiting_publishers.is_some());
        features.add_if(QueueFeatures::ASKERS, self.askers.is_some());
        features.add_if(QueueFeatures::DRAINING, self.draining.is_some());
        features.add_if(QueueFeatures::SEEKERS, self.consumers.has_seekers() || is_sought);
        features.add_if(QueueFeatures::GROUPS, self.consumers.has_groups());
        features.add_if(QueueFeatures::SINGLE_ACTIVE, self.settings.is_single_active);
        features.add_if(QueueFeatures::NO_LOCAL, self.no_local.is_some());
        features.add_if(QueueFeatures::EXPIRES, self.settings.expires.is_some());
        features.add_if(QueueFeatures::COUNTS, has_counts);
        features.add_if(QueueFeatures::STREAM, self.stream.is_some());
        features
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let entries = self.ready.len_in_memory() + self.unsettled.len();
        let delayed = self.delayed.as_ref().map_or(0, |delayed| delayed.charge());
        self.gauge.sub(entries * Entry::CHARGE + delayed + self.room_charged * ROOM_CHARGE);
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
