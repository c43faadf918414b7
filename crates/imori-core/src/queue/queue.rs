//! The queue itself.
//!
//! ```text
//!              publish                      take                accept
//!  publisher ──┬──────────► ready ──────────────────► unsettled ───────► gone
//!              └► delayed ──►│   ▲                      │     │
//!      expired, overflow    │   └──────── release ─────┘     │ reject,
//!                           ▼                                ▼ delivery limit
//!                       dead letter, or gone ◄───────────────┘
//!
//! On a full disk a dead letter stays unsettled for a while, and nobody has it (`die.rs`).
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
use crate::time::Time;

/// Unsettled deliveries for which a queue keeps room when it has none; it is not charged.
pub(crate) const ROOM_KEPT: usize = 64;

/// Bytes of the room for one unsettled delivery: a hash table is at most seven eighths full.
pub(crate) const ROOM_CHARGE: usize = (size_of::<(u64, Entry)>() + 1) * 8 / 7;

/// The identity and safety of a queue that outlives the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// The number of the queue in its store.
    pub id: DurableQueueId,
    /// How safe a persistent message is when it is confirmed.
    pub level: Level,
}

/// A queue. See the module for its picture.
#[derive(Debug)]
pub struct Queue {
    pub(crate) vhost: VhostId,
    pub(crate) name: Name,
    /// The settings in effect.
    pub(crate) settings: QueueSettings,
    /// The policies that act on it, if any do.
    pub(crate) governed: Option<Box<Governed>>,
    pub(crate) durability: Option<Durability>,
    /// The parts below that it uses. It lies beside what every message reads.
    pub(crate) features: QueueFeatures,
    /// Delayed messages; few queues have any.
    pub(crate) delayed: Option<Box<Delayed>>,
    pub(crate) dedup: Option<Box<Dedup>>,
    pub(crate) ready: Ready,
    pub(crate) unsettled: HashMap<u64, Entry, FixedState>,
    /// Bytes of the bodies of these.
    unsettled_bytes: u64,
    /// Bytes of the bodies of all messages here, as its vhost was told last.
    bytes_told: u64,
    /// Unsettled messages that died and stay for want of room.
    pub(crate) pending_dead_letters: Option<Box<PendingDeadLetters>>,
    /// The pages of the queue on disk.
    pub(crate) pages: Pages,
    /// Pages that are being written of entries that are in memory no more.
    pub(crate) writing: usize,
    /// Pages that are being written of entries that it has elsewhere too.
    pub(crate) copying: usize,
    /// Publishers that wait until the queue is shorter, while it throttles.
    pub(crate) waiting_publishers: Option<Box<WaitingPublishers>>,
    /// Connections that asked for one message and wait for a page; few queues have any.
    #[expect(clippy::box_collection, reason = "nearly every queue has none, and a box is a word")]
    pub(crate) askers: Option<Box<Vec<ConnectionId>>>,
    /// Consumers that give up their credit once they have all that there is; few queues have any.
    #[expect(clippy::box_collection, reason = "nearly every queue has none, and a box is a word")]
    pub(crate) draining: Option<Box<Vec<Reader>>>,
    /// When it tries again to write pages.
    pub(crate) page_retry: Option<Time>,
    /// The records of messages that are in no page.
    pub(crate) live_records: LiveRecords,
    /// Earlier deliveries of messages that nobody has read since the start, by their records.
    pub(crate) counts: HashMap<Lsn, EarlierDeliveries, FixedState>,
    pub(crate) consumers: Consumers,
    /// When those consumers look on that select or browse, if they stopped for others.
    pub(crate) seek_again: Option<Time>,
    /// Pages that such consumers have to look at, each with its priority.
    pub(crate) sought: Vec<(u8, PageId)>,
    /// Some pages were read for them.
    pub(crate) has_sought: bool,
    /// The publisher whose messages it does not take.
    pub(crate) no_local: Option<Name>,
    /// The number behind that of the last message that became ready.
    pub(crate) ready_end: u64,
    pub(crate) is_retired: bool,
    pub(crate) next_sequence: u64,
    pub(crate) activity: QueueActivity,
    /// The waiting message by which the time of waiting is told.
    pub(crate) wait_sample: WaitSample,
    pub(crate) last_used: Time,
    /// Unsettled deliveries whose room is charged.
    pub(crate) room_charged: usize,
    /// The earliest wake-up that was asked for and has not come.
    pub(crate) wake_up: Option<Time>,
    pub(crate) gauge: Gauge,
}

impl Queue {
    /// Makes an empty queue whose waiting messages are charged to `gauge`.
    pub fn new(vhost: VhostId, name: Name, settings: QueueSettings, gauge: Gauge, now: Time) -> Queue {
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
            next_sequence: 1,
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

    /// Makes it outlive the broker, which is said once, before it has any message.
    pub fn make_durable(&mut self, id: DurableQueueId) {
        self.durability = Some(Durability { id, level: self.settings.level.unwrap_or(Level::Disk) });
    }

    /// The identity in the store and the level of safety; `None` for a queue that ends with the broker.
    pub fn durability(&self) -> Option<Durability> {
        self.durability
    }

    /// The vhost it is in.
    pub fn vhost(&self) -> VhostId {
        self.vhost
    }

    /// Its name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The properties that are in effect.
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// How often what happened to its messages.
    pub fn activity(&self) -> &QueueActivity {
        &self.activity
    }

    /// Bytes of the bodies of those messages that wait.
    pub fn ready_bytes(&self) -> u64 {
        self.ready.body_bytes()
    }

    /// Bytes of the bodies of all messages that it has: those that wait, those that are delayed and those that are not
    /// settled.
    pub fn body_bytes(&self) -> u64 {
        let delayed = self.delayed.as_ref().map_or(0, |delayed| delayed.body_bytes());
        self.ready.body_bytes() + delayed + self.unsettled_bytes
    }

    /// Tells whether nobody has to see to it: no message waits, its bytes are about as many as its vhost was told, and
    /// none of [`QueueFeatures::OF_FOLLOW_UPS`] is used.
    #[inline]
    pub(crate) fn is_at_rest(&self, least: u64) -> bool {
        self.debug_features();
        !self.features.any(QueueFeatures::OF_FOLLOW_UPS)
            && self.ready.is_empty()
            && self.unsettled_bytes.abs_diff(self.bytes_told) < least
    }

    /// By how many bytes these are more, or fewer, than when it was asked last; `None` where that is less than `least`.
    #[inline]
    pub fn bytes_changed(&mut self, least: u64) -> Option<i64> {
        let bytes = self.body_bytes();
        if bytes.abs_diff(self.bytes_told) < least {
            return None;
        }
        let before = std::mem::replace(&mut self.bytes_told, bytes);
        i64::try_from(i128::from(bytes) - i128::from(before)).ok()
    }

    /// Bytes of bodies of which it told last.
    pub fn bytes_told(&self) -> u64 {
        self.bytes_told
    }

    /// Adds a delivery that is not settled.
    #[inline]
    pub(crate) fn give_out(&mut self, entry: Entry) {
        self.unsettled_bytes += entry.body_bytes();
        self.consumers.note_out(&entry.message.view());
        self.unsettled.insert(entry.envelope.sequence, entry);
    }

    /// Takes out a delivery that was not settled.
    #[inline]
    pub(crate) fn take_back(&mut self, sequence: u64) -> Option<Entry> {
        let entry = self.unsettled.remove(&sequence)?;
        self.unsettled_bytes -= entry.body_bytes();
        self.consumers.note_back(&entry.message.view());
        Some(entry)
    }

    /// How many messages wait.
    pub fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// Tells whether the first message that waits is in memory.
    pub fn has_front(&self) -> bool {
        self.ready.has_front()
    }

    /// How many messages wait for their time.
    pub fn delayed_len(&self) -> usize {
        self.delayed.as_ref().map_or(0, |delayed| delayed.len())
    }

    /// How many deliveries are not settled.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled.len()
    }

    /// How many of these died, and are here for want of room where the dead go.
    pub fn pending_dead_letters_len(&self) -> usize {
        self.pending_dead_letters.as_ref().map_or(0, |pending| pending.len())
    }

    /// How many consumers it has.
    pub fn consumers_len(&self) -> usize {
        self.consumers.len()
    }

    /// Its consumers.
    pub fn consumers(&self) -> impl Iterator<Item = Reader> {
        self.consumers.readers()
    }

    /// The only consumer that gets deliveries, where one at a time does.
    pub fn active_consumer(&self) -> Option<Reader> {
        self.consumers.active()
    }

    /// Tells whether `connection` may use it at all.
    pub fn is_open_to(&self, connection: ConnectionId) -> bool {
        self.settings.exclusive_to.is_none_or(|owner| owner == connection)
    }

    /// The ids that it takes no second time, if it is such a queue.
    pub fn dedup(&mut self) -> Option<&mut Dedup> {
        self.dedup.as_deref_mut()
    }

    /// The first record that its ids need, as [`Dedup::floor`].
    pub fn dedup_floor(&mut self, now: Time) -> Option<Lsn> {
        self.dedup()?.floor(now)
    }

    /// Tells why a consumer would not be added now.
    ///
    /// # Errors
    /// [`ConsumeRefusal`] where it, or another, wants the queue for itself.
    pub fn admit_consumer(&self, is_exclusive: bool) -> Result<(), ConsumeRefusal> {
        if self.is_retired { Err(ConsumeRefusal::Retired) } else { self.consumers.admit(is_exclusive) }
    }

    /// Adds a consumer, who was admitted. With `is_exclusive` the queue is its own.
    pub fn add_consumer(&mut self, reader: Reader, priority: i32, is_exclusive: bool, now: Time) {
        self.last_used = now;
        self.consumers.add(reader, priority, is_exclusive, None);
        self.renew_features();
    }

    /// Adds a consumer, who was admitted and does not take just what comes first.
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

    /// Forgets a consumer; tells whether the queue has to go with it.
    /// What it had not settled is released apart from this.
    pub fn remove_consumer(&mut self, reader: Reader, now: Time) -> bool {
        self.last_used = now;
        let was_consumer = self.consumers.remove(reader);
        self.renew_features();
        was_consumer && self.settings.is_auto_delete && self.consumers.is_empty()
    }

    /// Notes that a consumer can take more.
    pub fn wake(&mut self, reader: Reader) {
        self.consumers.wake(reader);
    }

    /// Notes that a consumer gives up its credit once it has all that there is for it.
    pub(crate) fn drain(&mut self, reader: Reader) {
        self.features.add(QueueFeatures::DRAINING);
        let draining = self.draining.get_or_insert_default();
        if !draining.contains(&reader) {
            draining.push(reader);
        }
    }

    /// Ends the draining of consumers as far as there is nothing more for them. `end` is told the name of the queue and
    /// whether that is so, and tells whether a consumer has ended it.
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
                || self.consumers.has_looked_through(*reader, self.ready_end);
            !end(*reader, &self.name, is_all)
        });
        self.draining = Some(draining).filter(|draining| !draining.is_empty());
        self.renew_features();
    }

    /// Notes that somebody declared it again.
    pub fn touch(&mut self, now: Time) {
        self.last_used = now;
    }

    /// Takes no consumers any more, as it is about to be deleted: between the look that finds it without
    /// consumers and the end, others may hold its id.
    pub fn retire(&mut self) {
        self.is_retired = true;
    }

    /// Tells whether it was unused for so long that it has to go.
    pub fn is_idle_too_long(&self, now: Time) -> bool {
        self.idle_deadline().is_some_and(|deadline| deadline <= now)
    }

    /// A wake-up to ask for: `Some` where one earlier than those asked for before is needed.
    pub fn new_wake_up(&mut self) -> Option<Time> {
        let messages =
            self.ready.fronts().filter_map(|entry| entry.envelope.deadline(self.settings.message_ttl)).min();
        let due = self.delayed.as_ref().and_then(|delayed| delayed.next_due());
        let forgotten = self.dedup.as_ref().and_then(|dedup| dedup.end());
        // None of them dies before the pending dead letters.
        let messages = messages.filter(|_| !self.is_held_up());
        let retry = self.pending_dead_letters.as_ref().map(|pending| pending.retry());
        let wants = [messages, due, forgotten, self.idle_deadline(), retry, self.seek_again];
        let next = wants.into_iter().flatten().min()?;
        if self.wake_up.is_some_and(|asked| asked <= next) {
            return None;
        }
        self.wake_up = Some(next);
        Some(next)
    }

    /// Notes that a wake-up has come. One that was asked for before an earlier one was needed changes
    /// nothing, else each of them would ask for another for ever.
    pub fn woken(&mut self, now: Time) {
        self.wake_up.take_if(|asked| *asked <= now);
        if let Some(dedup) = &mut self.dedup {
            dedup.forget_old(now);
        }
    }

    fn idle_deadline(&self) -> Option<Time> {
        // What died and is still here goes first.
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
    /// Makes the word say what is used now.
    pub(crate) fn renew_features(&mut self) {
        self.features = self.features_in_use();
    }

    /// Does so where some of it has to be seen to after each change: that may be over.
    #[inline]
    pub(crate) fn renew_features_in_use(&mut self) {
        if self.features.any(QueueFeatures::OF_FOLLOW_UPS) {
            self.renew_features();
        }
    }

    /// Holds the word against what is used, in builds that check.
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
