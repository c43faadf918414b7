//! The queue itself.
//!
//! ```text
//!              publish                      take                accept
//!  publisher ──┬──────────► ready ──────────────────► unsettled ───────► gone
//!              └► delayed ──►│   ▲                      │     │
//!      expired, overflow    │   └──────── release ─────┘     │ reject,
//!                           ▼                                ▼ delivery limit
//!                       dead letter, or gone ◄───────────────┘
//! ```

use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::consumers::{ConsumeRefusal, Consumers};
use super::dedup::Dedup;
use super::delayed::{Delayed, TakenOut};
use super::entry::Entry;
use super::level::{Front, Part};
use super::pages::{Page, Pages};
use super::press::Press;
use super::ready::Ready;
use super::settings::{Overflow, QueueSettings};
use super::unspilled::Unspilled;
use crate::confirm::{Level, Lsn};
use crate::delivery::{Count, Delivery, Holding, Outcome, Taken};
use crate::id::{ConnectionId, DurableQueueId, Reader, VhostId};
use crate::limits::DEDUP_BYTES_MAX;
use crate::memory::Gauge;
use crate::message::{AddressView, DeathReason, Deaths, Envelope, Head, Message, Publication};
use crate::name::Name;
use crate::time::Time;

/// Unsettled deliveries for which a queue keeps room when it has none; it is not charged.
const ROOM_KEPT: usize = 64;

/// Bytes of the room for one unsettled delivery: a hash table is at most seven eighths full.
const ROOM_CHARGE: usize = (size_of::<(u64, Entry)>() + 1) * 8 / 7;

/// The circumstances of a publish.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Where the message was published to.
    pub address: &'a AddressView<'a>,
    /// Its history, if it comes from another queue.
    pub deaths: Option<&'a Arc<Deaths>>,
    /// Its record, if this queue stands in it.
    pub lsn: Lsn,
    /// When it came.
    pub now: Time,
}

/// What a queue did with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// A consumer has it.
    Delivered,
    /// It waits.
    Waiting,
}

/// The queue is at its length limit and its policy is to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

/// What follows from a change of a queue, to be seen to after it is unlocked.
#[derive(Debug, Default)]
pub struct Effects {
    /// Messages that go where the queue sends those that were not accepted.
    pub dead: Vec<Dead>,
    /// Messages with a record that the queue is done with.
    pub settled: Vec<Holding>,
    /// Deliveries of such messages that failed, or may.
    pub counted: Vec<Count>,
}

/// What makes a queue outlive the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durability {
    /// What its store knows it by.
    pub id: DurableQueueId,
    /// How safe a persistent message is when it is confirmed.
    pub level: Level,
}

/// A message that left a queue without being accepted, on its way to where the queue sends such.
#[derive(Debug, Clone)]
pub struct Dead {
    /// The record that says where it was, until another says where it is: none where it has none.
    pub holding: Option<Holding>,
    /// The message.
    pub message: Arc<Message>,
    /// The exchange it goes to.
    pub exchange: Name,
    /// The routing key it gets.
    pub routing_key: Name,
    /// Its history, this death included.
    pub deaths: Arc<Deaths>,
}

/// A queue. See the module for its picture.
#[derive(Debug)]
pub struct Queue {
    vhost: VhostId,
    name: Name,
    settings: QueueSettings,
    durability: Option<Durability>,
    /// Few queues have such.
    pub(super) delayed: Option<Box<Delayed>>,
    dedup: Option<Box<Dedup>>,
    pub(super) ready: Ready,
    pub(super) unsettled: HashMap<u64, Entry, FixedState>,
    /// What of it is on disk in pages.
    pub(super) pages: Pages,
    /// Pages that are being written of entries that are in memory no more.
    pub(super) writing: usize,
    /// Pages that are being written of entries that it has elsewhere too.
    pub(super) copying: usize,
    /// Those who wait until it is shorter, if its publishers do.
    pub(super) press: Option<Box<Press>>,
    /// When it tries again to write pages.
    pub(super) page_retry: Option<Time>,
    /// The records of messages that are in no page.
    pub(super) unspilled: Unspilled,
    /// What is known of the deliveries of messages that nobody has read since the start.
    pub(super) counts: HashMap<Lsn, Count, FixedState>,
    consumers: Consumers,
    is_retired: bool,
    pub(super) next_sequence: u64,
    last_used: Time,
    /// Unsettled deliveries whose room is charged.
    room_charged: usize,
    /// The earliest wake-up that was asked for and has not come.
    wake_up: Option<Time>,
    pub(super) gauge: Gauge,
}

impl Queue {
    /// Makes an empty queue whose waiting messages are charged to `gauge`.
    pub fn new(vhost: VhostId, name: Name, settings: QueueSettings, gauge: Gauge, now: Time) -> Queue {
        Queue {
            vhost,
            name,
            durability: None,
            ready: Ready::new(settings.priority_max),
            delayed: None,
            dedup: settings
                .dedup_window
                .map(|window| Box::new(Dedup::new(window, DEDUP_BYTES_MAX, gauge.clone()))),
            settings,
            unsettled: HashMap::default(),
            pages: Pages::default(),
            writing: 0,
            copying: 0,
            press: None,
            page_retry: None,
            unspilled: Unspilled::default(),
            counts: HashMap::default(),
            consumers: Consumers::default(),
            is_retired: false,
            next_sequence: 1,
            last_used: now,
            room_charged: 0,
            wake_up: None,
            gauge,
        }
    }

    /// Makes it outlive the broker, which is said once, before it has any message.
    pub fn make_durable(&mut self, id: DurableQueueId) {
        self.durability = Some(Durability { id, level: self.settings.level.unwrap_or(Level::Disk) });
    }

    /// What makes it outlive the broker, if it does.
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

    /// What its declaration fixed.
    pub fn settings(&self) -> &QueueSettings {
        &self.settings
    }

    /// How many messages wait.
    pub fn ready_len(&self) -> usize {
        self.ready.len()
    }

    /// How many messages wait for their time.
    pub fn delayed_len(&self) -> usize {
        self.delayed.as_ref().map_or(0, |delayed| delayed.len())
    }

    /// How many deliveries are not settled.
    pub fn unsettled_len(&self) -> usize {
        self.unsettled.len()
    }

    /// How many consumers it has.
    pub fn consumers_len(&self) -> usize {
        self.consumers.len()
    }

    /// Its consumers.
    pub fn consumers(&self) -> impl Iterator<Item = Reader> {
        self.consumers.readers()
    }

    /// Tells whether `connection` may use it at all.
    pub fn is_open_to(&self, connection: ConnectionId) -> bool {
        self.settings.exclusive_to.is_none_or(|owner| owner == connection)
    }

    /// Tells whether so many messages, with so many bytes of bodies, would be refused now. Where messages are
    /// refused, a delayed one has its place from its coming: once it is due nobody could be told.
    pub fn refuses(&self, messages: u64, body_bytes: u64) -> bool {
        let (delayed, delayed_bytes) =
            self.delayed.as_ref().map_or((0, 0), |delayed| (delayed.len() as u64, delayed.body_bytes()));
        self.settings.overflow != Overflow::DropHead
            && self.is_over_with(messages + delayed, body_bytes + delayed_bytes)
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

    /// Takes a message: hands it to a consumer, or lets it wait.
    ///
    /// `offer` is called with the delivery and its sequence number for one consumer after the
    /// other until one takes it. What follows is added to `effects`.
    ///
    /// # Errors
    /// [`QueueFull`] where the length limit is reached and the policy is to refuse.
    pub fn publish(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        offer: &mut impl FnMut(Reader, &Delivery<'_>, u64) -> Taken,
        effects: &mut Effects,
    ) -> Result<Published, QueueFull> {
        self.ripen(arrival.now, effects);
        let sequence = self.next_sequence;
        if self.ready.is_empty() && due(publication, arrival).is_none() && self.consumers.next().is_some() {
            let view = publication.view();
            let delivery = Delivery {
                message: view,
                address: arrival.address,
                deaths: arrival.deaths,
                failures: 0,
                is_redelivered: false,
            };
            match self.offer_in_turn(&delivery, sequence, offer) {
                Some(Taken::Settled) => {
                    self.next_sequence += 1;
                    effects.settled.extend(self.holding(arrival.lsn));
                    return Ok(Published::Delivered);
                }
                Some(Taken::Unsettled) => {
                    let entry = self.entry(publication, arrival);
                    self.gauge.add(Entry::CHARGE);
                    self.note_given_out(&entry, effects);
                    self.unsettled.insert(sequence, entry);
                    self.charge_room();
                    return Ok(Published::Delivered);
                }
                _ => {}
            }
        }
        if self.refuses(1, publication.view().body.len() as u64) {
            self.refuse(publication, arrival, effects);
            return Err(QueueFull);
        }
        self.enqueue(publication, arrival, effects);
        Ok(Published::Waiting)
    }

    /// Refuses a message, as [`Queue::refuses`] said: it is dead-lettered if that is how the queue is.
    pub fn refuse(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>, effects: &mut Effects) {
        if self.settings.overflow == Overflow::RejectPublishDeadLetter {
            let entry = self.entry(publication, arrival);
            self.gauge.add(Entry::CHARGE);
            self.leave(&entry);
            self.bury(&entry, DeathReason::Overflow, arrival.now, effects);
        } else {
            effects.settled.extend(self.holding(arrival.lsn));
        }
    }

    /// Lets a message wait, whoever could take it: for a commit, which delivers afterwards.
    pub fn enqueue(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>, effects: &mut Effects) {
        self.ripen(arrival.now, effects);
        let entry = self.entry(publication, arrival);
        match due(publication, arrival) {
            Some(due) => self.delay(due, entry),
            None => {
                self.gauge.add(Entry::CHARGE);
                self.ready.push(entry);
                self.drop_surplus(arrival.now, effects);
            }
        }
    }

    /// Takes back the messages that this is the publisher's own name of, as long as they are not due; tells how
    /// many these were. They go nowhere.
    pub fn cancel(&mut self, name: &[u8], now: Time, effects: &mut Effects) -> usize {
        self.ripen(now, effects);
        let mut cancelled = 0;
        while let Some(taken) = self.with_delayed(|delayed, _| delayed.pop_named(name, now)).flatten() {
            effects.settled.extend(self.holding(taken.lsn()));
            self.drop_delayed(taken);
            cancelled += 1;
        }
        cancelled
    }

    /// A message that it had before the broker was away, to be restored, unless it is not due; and before it those
    /// that were due when it came. `arrival` says when that was.
    pub(crate) fn found(
        &mut self,
        publication: &Publication<'_>,
        arrival: &Arrival<'_>,
        count: Option<&Count>,
        is_doubtful: bool,
    ) -> Vec<Entry> {
        let mut found = self.due_before(arrival.now);
        let mut entry = self.entry(publication, arrival);
        let failures = count.map_or(0, |count| count.failures);
        let is_counted = count.is_some_and(|count| count.is_redelivered);
        entry.envelope.failures = failures;
        entry.envelope.is_redelivered = is_doubtful || is_counted;
        let is_failed = self.settings.delivery_limit.is_some_and(|limit| failures > limit);
        match due(publication, arrival).filter(|_| !is_failed) {
            Some(due) => {
                // Nobody knows whether it was given out, but what is due now or later was not. The queue is as
                // old as the restoration.
                entry.envelope.is_redelivered = is_counted || is_doubtful && due < self.last_used;
                self.delay(due, entry);
            }
            None => found.push(entry),
        }
        found
    }

    /// Takes those that were due when something came.
    pub(super) fn due_before(&mut self, now: Time) -> Vec<Entry> {
        std::iter::from_fn(|| self.pop_due(now)).collect()
    }

    /// It has all that it had. What fell due while the broker was away is ready; where that is too much, the next
    /// arrival makes some go, as it does after a release.
    pub fn all_restored(&mut self, now: Time) {
        self.ripen_in_place(now);
    }

    /// Gives out waiting messages for as long as somebody takes them.
    pub fn deliver(
        &mut self,
        now: Time,
        offer: &mut impl FnMut(Reader, &Delivery<'_>, u64) -> Taken,
        effects: &mut Effects,
    ) {
        self.ripen(now, effects);
        self.expire(now, effects);
        while self.consumers.next().is_some() {
            // Taken out for the offer, so that nothing of the queue is borrowed meanwhile.
            let Some(entry) = self.ready.pop() else {
                return;
            };
            if entry.envelope.deadline.is_some_and(|deadline| deadline <= now) {
                self.leave(&entry);
                self.bury(&entry, DeathReason::Expired, now, effects);
                continue;
            }
            let sequence = entry.envelope.sequence;
            match self.offer_in_turn(&entry.delivery(&entry.address()), sequence, offer) {
                Some(Taken::Settled) => {
                    self.leave(&entry);
                    effects.settled.extend(self.holding(entry.envelope.lsn));
                }
                Some(Taken::Unsettled) => {
                    self.note_given_out(&entry, effects);
                    self.unsettled.insert(sequence, entry);
                    self.charge_room();
                }
                _ => self.ready.put_back(entry),
            }
        }
    }

    /// Does what a consumer says of a delivery; tells whether it was out.
    pub fn settle(&mut self, sequence: u64, outcome: Outcome, now: Time, effects: &mut Effects) -> bool {
        let Some(mut entry) = self.unsettled.remove(&sequence) else {
            return false;
        };
        self.give_back_room();
        match outcome {
            Outcome::Accept => {
                self.leave(&entry);
                effects.settled.extend(self.holding(entry.envelope.lsn));
            }
            Outcome::Reject => {
                self.leave(&entry);
                self.bury(&entry, DeathReason::Rejected, now, effects);
            }
            Outcome::Release { failed } => {
                entry.envelope.is_redelivered = true;
                entry.envelope.failures = entry.envelope.failures.saturating_add(u32::from(failed));
                if self.settings.delivery_limit.is_some_and(|limit| entry.envelope.failures > limit) {
                    self.leave(&entry);
                    self.bury(&entry, DeathReason::DeliveryLimit, now, effects);
                } else {
                    effects.counted.extend(self.count(&entry, entry.envelope.failures));
                    self.ready.put_back(entry);
                }
            }
        }
        true
    }

    /// Adds a consumer, who was admitted. With `is_exclusive` the queue is its own.
    pub fn add_consumer(&mut self, reader: Reader, priority: i32, is_exclusive: bool, now: Time) {
        self.last_used = now;
        self.consumers.add(reader, priority, is_exclusive);
    }

    /// Forgets a consumer; tells whether the queue has to go with it.
    /// What it had not settled is released apart from this.
    pub fn remove_consumer(&mut self, reader: Reader, now: Time) -> bool {
        self.last_used = now;
        let was_consumer = self.consumers.remove(reader);
        was_consumer && self.settings.is_auto_delete && self.consumers.is_empty()
    }

    /// Notes that a consumer can take more.
    pub fn wake(&mut self, reader: Reader) {
        self.consumers.wake(reader);
    }

    /// Notes that somebody declared it again.
    pub fn touch(&mut self, now: Time) {
        self.last_used = now;
    }

    /// Drops what waits and tells how many messages that were.
    pub fn purge(&mut self) -> usize {
        let purged = self.ready.len();
        let mut ready = std::mem::replace(&mut self.ready, Ready::new(self.settings.priority_max));
        for level in ready.levels_mut() {
            std::mem::take(&mut level.released).into_values().for_each(|entry| self.leave(&entry));
            for part in std::mem::take(&mut level.parts) {
                match part {
                    Part::Memory(run) => run.into_entries().for_each(|entry| self.leave(&entry)),
                    Part::Page(part) => {
                        let page = self.pages.get(part.id).and_then(|page| page.in_journal.as_ref());
                        for lsn in page.into_iter().flat_map(|page| &page.read.lsns) {
                            self.unspilled.remove(*lsn);
                        }
                        self.pages.let_go(part.id, part.len);
                    }
                }
            }
        }
        let delayed = self.delayed_len();
        let all = self.with_delayed(|delayed, _| delayed.take_all()).unwrap_or_default();
        all.into_iter().for_each(|taken| self.drop_delayed(taken));
        purged + delayed
    }

    /// Buries what has expired at the front.
    pub fn expire(&mut self, now: Time, effects: &mut Effects) {
        let is_due = |entry: &Entry| entry.envelope.deadline.is_some_and(|deadline| deadline <= now);
        while let Some(entry) = self.ready.pop_if(is_due) {
            self.leave(&entry);
            self.bury(&entry, DeathReason::Expired, now, effects);
        }
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
        let messages = self.ready.fronts().filter_map(|entry| entry.envelope.deadline).min();
        let due = self.delayed.as_ref().and_then(|delayed| delayed.next_due());
        let forgotten = self.dedup.as_ref().and_then(|dedup| dedup.end());
        let next = [messages, due, forgotten, self.idle_deadline()].into_iter().flatten().min()?;
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

    fn delay(&mut self, due: Time, entry: Entry) {
        self.delayed.get_or_insert_default();
        self.with_delayed(|delayed, _| delayed.insert(due, entry));
    }

    /// Changes those that wait for their time, if there are any, and charges what that makes of their memory.
    pub(super) fn with_delayed<R>(
        &mut self,
        change: impl FnOnce(&mut Delayed, &mut Pages) -> R,
    ) -> Option<R> {
        let delayed = self.delayed.as_mut()?;
        let before = delayed.charge();
        let result = change(delayed, &mut self.pages);
        match delayed.charge().checked_sub(before) {
            Some(more) => self.gauge.add(more),
            None => self.gauge.sub(before - delayed.charge()),
        }
        if delayed.is_empty() {
            self.delayed = None;
        }
        Some(result)
    }

    /// Takes the first of those that wait for their time, if it is due by now and in memory.
    fn pop_due(&mut self, now: Time) -> Option<Entry> {
        match self.with_delayed(|delayed, _| delayed.pop_due(now))? {
            Front::Entry(entry) => Some(entry),
            Front::OnDisk | Front::Nothing => None,
        }
    }

    /// Forgets one that waited for its time.
    fn drop_delayed(&mut self, taken: TakenOut) {
        match taken {
            TakenOut::Entry(entry) => {
                self.gauge.add(Entry::CHARGE);
                self.leave(&entry);
            }
            TakenOut::Stub(stub) => {
                self.pages.settle(stub.page, stub.lsn);
                self.counts.remove(&stub.lsn);
            }
        }
    }

    /// Lets wait with the others what is due by now; what then is too much goes, if that is how the queue is.
    pub(super) fn ripen(&mut self, now: Time, effects: &mut Effects) {
        if self.delayed.as_ref().and_then(|delayed| delayed.next_due()).is_none_or(|due| due > now) {
            return;
        }
        // What is over makes room for it.
        self.expire(now, effects);
        self.ripen_in_place(now);
        if self.settings.overflow == Overflow::DropHead {
            self.drop_surplus(now, effects);
        }
    }

    /// Lets wait with the others what is due by now, however many these are.
    fn ripen_in_place(&mut self, now: Time) {
        while let Some(mut entry) = self.pop_due(now) {
            // It comes behind all that wait already.
            entry.envelope.sequence = self.next_sequence;
            self.next_sequence += 1;
            entry.position = self.next_position(entry.envelope.priority, entry.envelope.lsn);
            self.gauge.add(Entry::CHARGE);
            self.ready.push(entry);
        }
    }

    /// Buries the oldest while there are too many. One that has to be read first is when it is.
    pub(super) fn drop_surplus(&mut self, now: Time, effects: &mut Effects) {
        while self.is_over_with(0, 0) {
            let Some(entry) = self.ready.pop_to_drop() else {
                break;
            };
            self.leave(&entry);
            self.bury(&entry, DeathReason::Overflow, now, effects);
        }
    }

    /// Gives back the room of a burst, seldom enough that moving what is left costs little.
    fn give_back_room(&mut self) {
        // What was removed can make a table tell a smaller capacity than it has.
        let (len, room) = (self.unsettled.len(), self.unsettled.capacity().max(self.room_charged));
        if room > ROOM_KEPT && len < room / 8 {
            self.unsettled.shrink_to(2 * len);
            self.charge_room();
        }
    }

    /// Charges the room for unsettled deliveries as it grows and shrinks, which is seldom.
    pub(super) fn charge_room(&mut self) {
        let room = Some(self.unsettled.capacity()).filter(|room| *room > ROOM_KEPT).unwrap_or(0);
        match room.checked_sub(self.room_charged) {
            Some(0) => return,
            Some(more) => self.gauge.add(more * ROOM_CHARGE),
            None => self.gauge.sub((self.room_charged - room) * ROOM_CHARGE),
        }
        self.room_charged = room;
    }

    fn idle_deadline(&self) -> Option<Time> {
        let expires = self.settings.expires.filter(|_| self.consumers.is_empty())?;
        Some(self.last_used.after(expires)).filter(|deadline| *deadline < Time::NEVER)
    }

    /// Offers a delivery to one consumer after the other; `None` or [`Taken::Full`] where nobody took it.
    fn offer_in_turn(
        &mut self,
        delivery: &Delivery<'_>,
        sequence: u64,
        offer: &mut impl FnMut(Reader, &Delivery<'_>, u64) -> Taken,
    ) -> Option<Taken> {
        while let Some(reader) = self.consumers.next() {
            match offer(reader, delivery, sequence) {
                taken @ (Taken::Settled | Taken::Unsettled) => {
                    self.consumers.served(reader);
                    return Some(taken);
                }
                Taken::Full => self.consumers.wait(reader),
                // Its connection is closing and will remove it; until then nobody asks it again.
                Taken::Gone => self.consumers.wait(reader),
            }
        }
        None
    }

    fn entry(&mut self, publication: &Publication<'_>, arrival: &Arrival<'_>) -> Entry {
        let head = publication.view().head;
        let message = publication.stored(&self.gauge);
        // How long it may wait counts from when somebody could have it.
        let from = due(publication, arrival).unwrap_or(arrival.now);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.need_record(arrival.lsn);
        let deadline = Entry::deadline(head, arrival.deaths.is_some(), self.settings.message_ttl, from);
        let priority = self.priority_of(head);
        let entry = Entry::new(
            message,
            Envelope {
                address: arrival.address.keep(),
                sequence,
                lsn: arrival.lsn,
                deadline,
                deaths: arrival.deaths.cloned(),
                failures: 0,
                is_redelivered: false,
                priority,
            },
        );
        Entry { position: self.next_position(entry.envelope.priority, arrival.lsn), ..entry }
    }

    /// The priority that a message has here.
    pub(super) fn priority_of(&self, head: &Head) -> u8 {
        self.settings.priority_max.unwrap_or(0).min(head.priority.unwrap_or(0))
    }

    /// Notes that the journal has what it holds.
    pub(super) fn need_record(&mut self, lsn: Lsn) {
        if self.keeps(lsn) {
            self.unspilled.add(lsn);
        }
    }

    /// Forgets an entry that is neither ready nor out any more.
    pub(super) fn leave(&mut self, entry: &Entry) {
        self.gauge.sub(Entry::CHARGE);
        let lsn = entry.envelope.lsn;
        let is_kept = entry.page.and_then(|page| self.pages.get(page)).is_some_and(Page::is_kept);
        if let Some(page) = entry.page {
            self.pages.settle(page, lsn);
        }
        if !is_kept && self.keeps(lsn) {
            self.unspilled.remove(lsn);
        }
        if !self.counts.is_empty() {
            self.counts.remove(&lsn);
        }
    }

    /// Tells whether it needs this record while it has the message.
    fn keeps(&self, lsn: Lsn) -> bool {
        lsn != Lsn::NONE && self.durability.is_some_and(|durability| durability.level > Level::Memory)
    }

    fn is_over_with(&self, messages: u64, bytes: u64) -> bool {
        let len = self.ready.len() as u64 + messages;
        let body_bytes = self.ready.body_bytes() + bytes;
        self.settings.length_max.is_some_and(|max| len > max)
            || self.settings.length_bytes_max.is_some_and(|max| body_bytes > max)
    }

    /// What its store knows a message by, if that has a record in this queue.
    fn holding(&self, lsn: Lsn) -> Option<Holding> {
        let Durability { id, .. } = self.durability.filter(|_| lsn != Lsn::NONE)?;
        Some(Holding { queue: id, lsn })
    }

    pub(super) fn count(&self, entry: &Entry, failures: u32) -> Option<Count> {
        let holding = self.holding(entry.envelope.lsn)?;
        Some(Count { holding, failures, is_redelivered: true })
    }

    /// Where failures are limited, a delivery counts as failed until something else is heard: a message that
    /// kills the broker meets its limit too.
    fn note_given_out(&mut self, entry: &Entry, effects: &mut Effects) {
        if !self.counts.is_empty() {
            self.counts.remove(&entry.envelope.lsn);
        }
        if self.settings.delivery_limit.is_some() {
            effects.counted.extend(self.count(entry, entry.envelope.failures.saturating_add(1)));
        }
    }

    /// What would leave it as a dead letter if a delivery were settled so, if anything would.
    pub fn death(&self, sequence: u64, outcome: Outcome, now: Time) -> Option<Dead> {
        let entry = self.unsettled.get(&sequence)?;
        let reason = match outcome {
            Outcome::Accept => return None,
            Outcome::Reject => DeathReason::Rejected,
            Outcome::Release { failed } => {
                let failures = entry.envelope.failures.saturating_add(u32::from(failed));
                self.settings.delivery_limit.filter(|limit| failures > *limit)?;
                DeathReason::DeliveryLimit
            }
        };
        self.dead(entry, reason, now)
    }

    pub(super) fn bury(&self, entry: &Entry, reason: DeathReason, now: Time, effects: &mut Effects) {
        match self.dead(entry, reason, now) {
            Some(dead) => effects.dead.push(dead),
            None => effects.settled.extend(self.holding(entry.envelope.lsn)),
        }
    }

    /// The dead letter that it sends of an entry, if it sends any.
    fn dead(&self, entry: &Entry, reason: DeathReason, now: Time) -> Option<Dead> {
        let target = self.settings.dead_letter.as_ref()?;
        let none = Deaths::default();
        let before = entry.envelope.deaths.as_deref().unwrap_or(&none);
        let deaths = before.and(&self.name, reason, &entry.envelope.address, now);
        Some(Dead {
            holding: self.holding(entry.envelope.lsn),
            message: Arc::clone(&entry.message),
            exchange: target.exchange.clone(),
            routing_key: target.routing_key.clone().unwrap_or_else(|| entry.envelope.address.subject.clone()),
            deaths: Arc::new(deaths),
        })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let entries = self.ready.len_in_memory() + self.unsettled.len();
        let delayed = self.delayed.as_ref().map_or(0, |delayed| delayed.charge());
        self.gauge.sub(entries * Entry::CHARGE + delayed + self.room_charged * ROOM_CHARGE);
    }
}

/// When somebody can have a message, if that is later than its coming. A dead letter waited before.
fn due(publication: &Publication<'_>, arrival: &Arrival<'_>) -> Option<Time> {
    let delay = publication.view().head.delay_ms.filter(|_| arrival.deaths.is_none())?;
    Some(arrival.now.after(Duration::from_millis(u64::from(delay.get()))))
}

#[cfg(test)]
mod tests;
