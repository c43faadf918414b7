//! Restores queues from a store: first definitions, then settlements and counts, then messages.
//!
//! The caller hands in rows and records; nothing here reads the disk. Exclusive and auto-delete queues have
//! left nothing. Messages of deleted queues are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::lost::LostQueues;
use super::pages::{PagesOfQueue, RestoredPages, Waiting, put_in_order};
use super::settled::Settled;
use crate::confirm::Lsn;
use crate::delivery::{AnnotatedMessage, DedupEntry, DeliveryCount, RecordRef};
use crate::entries::{GonePage, PageFacts, PagePlace};
use crate::id::{DurableQueueId, QueueId, VhostId};
use crate::limits::PAGE_BYTES_GOAL;
use crate::memory::Gauge;
use crate::message::{AddressView, Deaths, Message, Property, Publication, Rollup};
use crate::name::Name;
use crate::policy::Policies;
use crate::queue::{Arrival, Queue, QueueSettings};
use crate::record::{
    BindingDefinition, BindingTarget, Checkpoint, ConsumerState, Definition, MessageRecord, RecordError, Row,
    StreamRecord, Table, decode_annotations, decode_counts, decode_dedup_entries, decode_delayed_entry,
    decode_purge, decode_settle, decode_stream_entry,
};
use crate::route::{ExchangeKind, Settings, Target};
use crate::streaming::FoundStream;
use crate::time::Time;
use crate::topology::Topology;

/// The numbers of a start: queues, messages, and definitions that did not apply.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// Number of durable queues.
    pub queues: usize,
    /// Number of messages in them; a message in two queues counts twice.
    pub messages: usize,
    /// Number of definitions that could not be applied: their exchange or vhost is gone, or there are too
    /// many.
    pub passed_over: usize,
}

/// A restored queue to wake, and its messages that failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awakening {
    /// The queue.
    pub id: QueueId,
    /// Sequence numbers of these messages.
    pub failed: Vec<u64>,
}

/// The limits that decide which messages stay in the journal at a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaving {
    /// Bytes of messages to take into memory; later messages stay in the journal.
    pub after_bytes: usize,
    /// Approximate bytes to read from the journal at once later.
    pub page_bytes: usize,
}

/// The state of a restoration.
#[derive(Debug)]
pub struct Restore {
    gauge: Gauge,
    now: Time,
    was_clean: bool,
    /// Messages with records below this one may have been delivered, however the last process ended.
    doubtful_below: Lsn,
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    /// The previous values of rows that definitions in the journal changed.
    amended: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
    queues: BTreeMap<DurableQueueId, (Queue, Vec<Waiting>)>,
    leaving: Leaving,
    /// Bytes of messages taken into memory so far.
    taken_bytes: usize,
    pages: RestoredPages,
    policies: BTreeMap<VhostId, Policies>,
    exchanges: Vec<(VhostId, Name, ExchangeKind, Settings)>,
    bindings: Vec<BindingDefinition>,
    settled: Settled,
    counts: HashMap<RecordRef, DeliveryCount, FixedState>,
    /// The annotations of messages; each of these has a count too.
    annotations: HashMap<RecordRef, Box<[u8]>, FixedState>,
    seen: BTreeMap<DurableQueueId, Vec<(DedupEntry, Lsn)>>,
    /// What the journal and the pages have of streams.
    streams: BTreeMap<DurableQueueId, StreamState>,
    /// The lost queues, if definitions were lost.
    lost: Option<LostQueues>,
}

/// The state of a stream, as far as it is known.
#[derive(Debug, Default)]
struct StreamState {
    found: FoundStream,
    removed: HashSet<u64, FixedState>,
    /// Numbers of messages that are in pages.
    paged: HashSet<u64, FixedState>,
    consumers: BTreeMap<Name, (ConsumerState, Lsn, Vec<u64>)>,
}

impl Restore {
    /// Creates an empty restoration. After an unclean end the deliveries are not known, so every restored
    /// message is marked as redelivered.
    pub fn new(gauge: Gauge, now: Time, was_clean: bool) -> Restore {
        Restore {
            gauge,
            now,
            was_clean,
            doubtful_below: if was_clean { Lsn::NONE } else { Lsn::NEVER },
            rows: BTreeMap::new(),
            amended: BTreeMap::new(),
            queues: BTreeMap::new(),
            leaving: Leaving { after_bytes: usize::MAX, page_bytes: PAGE_BYTES_GOAL },
            taken_bytes: 0,
            pages: RestoredPages::default(),
            policies: BTreeMap::new(),
            exchanges: Vec::new(),
            bindings: Vec::new(),
            settled: Settled::default(),
            counts: HashMap::default(),
            annotations: HashMap::default(),
            seen: BTreeMap::new(),
            streams: BTreeMap::new(),
            lost: None,
        }
    }

    /// Declares that definitions were lost: undeclared queues with messages come back in this vhost, named
    /// after their numbers.
    #[must_use]
    pub fn lacking_queues(self, vhost: VhostId) -> Restore {
        Restore { lost: Some(LostQueues::of(vhost)), ..self }
    }

    /// Sets which messages may stay in the journal; without this, none do.
    #[must_use]
    pub fn leaving(self, leaving: Leaving) -> Restore {
        Restore { leaving, ..self }
    }

    /// Sets the policies of vhosts. Has to come before the definitions.
    #[must_use]
    pub fn under(self, policies: impl IntoIterator<Item = (VhostId, Policies)>) -> Restore {
        Restore { policies: policies.into_iter().collect(), ..self }
    }

    /// Adds a row from the store of definitions.
    pub fn row(&mut self, table: Table, key: Vec<u8>, value: Vec<u8>) {
        self.rows.insert((table, key), value);
    }

    /// Applies a definition from the journal that the store of definitions lacks. Definitions come by rising
    /// number.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn definition(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        let definition = Definition::decode(payload)?;
        if let (Some(lost), Definition::QueueGone { queue }) = (&mut self.lost, &definition) {
            lost.note_gone(*queue);
        }
        for row in definition.rows(lsn) {
            match row {
                Row::Put { table, key, value } => {
                    let before = self.rows.insert((table, key.clone()), value);
                    self.amended.entry((table, key)).or_insert(before);
                }
                Row::Gone(gone) => {
                    let is_gone = |(table, key): &(Table, Vec<u8>)| gone.takes(*table, key);
                    for (place, before) in self.rows.extract_if(.., |place, _| is_gone(place)) {
                        self.amended.entry(place).or_insert(Some(before));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the definitions in the journal have changed the rows; to be called before [`Restore::define`].
    pub fn amends(&self) -> bool {
        self.amended.iter().any(|(place, before)| self.rows.get(place) != before.as_ref())
    }

    /// Creates the queues, exchanges and bindings that the rows define. No definition may follow.
    ///
    /// # Errors
    /// [`RecordError`] of a row that cannot be decoded.
    pub fn define(&mut self) -> Result<(), RecordError> {
        for ((table, key), value) in std::mem::take(&mut self.rows) {
            let (definition, lsn) = Definition::of_row(table, &key, &value)?;
            match definition {
                Definition::Queue { vhost, name, settings } => {
                    self.make_queue(DurableQueueId(lsn.0), vhost, name, settings);
                }
                Definition::Exchange { vhost, name, kind, settings } => {
                    self.exchanges.push((vhost, name, kind, settings));
                }
                Definition::Binding(binding) => self.bindings.push(binding),
                Definition::QueueChanged { .. }
                | Definition::QueueGone { .. }
                | Definition::ExchangeGone { .. }
                | Definition::BindingGone(_) => {}
            }
        }
        Ok(())
    }

    /// The name of a queue that is defined.
    pub fn queue_name(&self, id: DurableQueueId) -> Option<&Name> {
        self.queues.get(&id).map(|(queue, _)| queue.name())
    }

    fn make_queue(&mut self, id: DurableQueueId, vhost: VhostId, name: Name, settings: QueueSettings) {
        let mut queue = Queue::new(vhost, name, settings, self.gauge.clone(), self.now);
        if let Some(policies) = self.policies.get(&vhost) {
            let matched = policies.of_queue(queue.name().as_bytes(), queue.declared().kind);
            queue.govern(matched, self.now);
        }
        queue.make_durable(id);
        self.queues.insert(id, (queue, Vec::new()));
    }

    /// Whether this queue exists. If its definition was lost, it is declared anew first.
    fn has_queue(&mut self, id: DurableQueueId) -> bool {
        if self.queues.contains_key(&id) {
            return true;
        }
        let Some(lost) = &mut self.lost else { return false };
        let queues = &self.queues;
        let is_free = |vhost, name: &str| {
            let has = |queue: &Queue| queue.vhost() == vhost && queue.name().as_bytes() == name.as_bytes();
            !queues.values().any(|(queue, _)| has(queue))
        };
        let Some(Definition::Queue { vhost, name, settings }) = lost.make(id, &is_free) else { return false };
        self.make_queue(id, vhost, name, settings);
        true
    }

    /// The queues declared anew, by the numbers of their lost definitions; complete once all messages were
    /// added.
    pub fn made_anew(&self) -> &[(Lsn, Definition)] {
        self.lost.as_ref().map_or(&[], LostQueues::made)
    }

    /// Adds a record of settlements. All of these come before the first message.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn settle(&mut self, payload: &[u8]) -> Result<(), RecordError> {
        decode_settle(payload, &mut |record_ref| {
            self.settled.settle(record_ref);
        })
    }

    /// Adds a record of a stream. These come by rising number, before the first message and the first page that is
    /// read.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn stream(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        let record = StreamRecord::decode(payload)?;
        let state = self.streams.entry(record.queue()).or_default();
        match record {
            StreamRecord::Removed(_, removed) => {
                // The number of a removed message is not given again, even if it was the last one.
                let last = removed.iter().map(|(_, last)| last.saturating_add(1)).max().unwrap_or(0);
                state.found.next = state.found.next.max(last);
                state.removed.extend(removed.into_iter().flat_map(|(first, last)| first..=last));
            }
            StreamRecord::Mark(_, next, created) => {
                state.found.next = state.found.next.max(next);
                state.found.mark = Some((lsn, created));
            }
            StreamRecord::Consumer(_, consumer) => {
                state.consumers.insert(consumer.name.clone(), (*consumer, lsn, Vec::new()));
            }
            StreamRecord::ConsumerGone(_, name) => {
                state.consumers.remove(&name);
            }
            StreamRecord::Acked(_, name, acked) => {
                if let Some((.., since)) = state.consumers.get_mut(&name) {
                    since.extend(acked.into_iter().flat_map(|(first, last)| first..=last));
                }
            }
            StreamRecord::Scheduled(_, sequence, last, schedule) => {
                state.found.schedules.insert(sequence, (schedule, last, lsn));
            }
        }
        Ok(())
    }

    /// Adds a record of purged messages. All of these come before the first message and the first page that is read.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn purge(&mut self, payload: &[u8]) -> Result<(), RecordError> {
        self.settled.purge(&decode_purge(payload)?);
        Ok(())
    }

    /// Adds a record of delivery counts. These come by rising number, and before the first message.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn count(&mut self, payload: &[u8]) -> Result<(), RecordError> {
        decode_counts(payload, &mut |count| {
            self.counts.insert(count.record_ref, count);
        })
    }

    /// Adds the annotations of a message. These come by rising number, and before the first message.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn annotations(&mut self, payload: &[u8]) -> Result<(), RecordError> {
        let AnnotatedMessage { record_ref, annotations } = decode_annotations(payload)?;
        self.annotations.insert(record_ref, annotations);
        // The message was delivered, even if no record says so.
        let count = DeliveryCount { record_ref, failures: 0, is_redelivered: true, is_rejected: false };
        self.counts.entry(record_ref).or_insert(count);
        Ok(())
    }

    /// Sets the last checkpoint. Has to come before the first page.
    pub fn checkpoint(&mut self, checkpoint: Checkpoint) {
        if self.was_clean {
            self.doubtful_below = checkpoint.doubtful_records_below;
        }
        self.pages.checkpoint(checkpoint);
    }

    /// Adds a page that was found. Pages come after all definitions.
    pub fn page(&mut self, facts: PageFacts) {
        let is_there = self.pages.is_needed(&facts) && self.has_queue(facts.queue);
        self.pages.add(facts, is_there);
    }

    /// The pages of delayed messages and of streams, to be read after all settlements and before any page is listed.
    pub fn delayed_pages(&self) -> Vec<PagePlace> {
        self.pages.places_to_read(|queue| self.is_stream(queue))
    }

    fn is_stream(&self, queue: DurableQueueId) -> bool {
        self.queues.get(&queue).is_some_and(|(queue, _)| queue.is_stream())
    }

    /// Adds the entries of a page of delayed messages or of a stream, each with its record number. An unreadable page keeps
    /// its entries for the next start.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn delayed_page<'a>(
        &mut self,
        place: PagePlace,
        entries: impl Iterator<Item = (Lsn, &'a [u8])>,
    ) -> Result<(), RecordError> {
        if let Some(queue) = self.pages.owner(place).filter(|queue| self.is_stream(*queue)) {
            return self.stream_page(queue, place, entries);
        }
        let decode = |(lsn, payload)| decode_delayed_entry(lsn, payload);
        let found = entries.map(decode).collect::<Result<Vec<_>, _>>()?;
        let highest = found.iter().map(|found| found.sequence).max();
        let queue = self.pages.owner(place).and_then(|queue| self.queues.get_mut(&queue));
        if let Some(((queue, _), highest)) = queue.zip(highest) {
            queue.number_above(highest);
        }
        self.pages.list_delayed(place, found, &self.settled);
        Ok(())
    }

    fn stream_page<'a>(
        &mut self,
        queue: DurableQueueId,
        place: PagePlace,
        entries: impl Iterator<Item = (Lsn, &'a [u8])>,
    ) -> Result<(), RecordError> {
        let state = self.streams.entry(queue).or_default();
        let mut gone = Vec::new();
        for (_, payload) in entries {
            let entry = decode_stream_entry(payload)?;
            let is_twice = !state.paged.insert(entry.sequence);
            match is_twice
                || state.removed.contains(&entry.sequence)
                || self.pages.is_settled(place, entry.sequence)
            {
                true => gone.push(entry.sequence),
                false => state.found.in_pages.push(entry),
            }
        }
        self.pages.settle_in(place, gone);
        Ok(())
    }

    /// The pages to read record numbers of; to be called once settlements and delivery counts are known. The
    /// journal has the records at or above `floor`.
    pub fn pages_to_list(&mut self, floor: Lsn) -> Vec<PagePlace> {
        let counted = self.counts.keys().copied();
        let is_stream =
            |queue| self.queues.get(&queue).is_some_and(|(queue, _): &(Queue, _)| queue.is_stream());
        self.pages.needing_lists(floor, &self.settled, counted, is_stream)
    }

    /// Adds the record numbers of a page. Has to come before the first message.
    pub fn page_list(&mut self, place: PagePlace, lsns: &[Lsn]) {
        self.pages.list(place, lsns, &self.settled);
    }

    /// Adds message ids that a queue has accepted; these may come at any time after the definitions.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn seen(&mut self, lsn: Lsn, payload: &[u8]) -> Result<(), RecordError> {
        decode_dedup_entries(payload, &mut |queue, seen| self.note_seen(queue, seen, lsn))
    }

    fn note_seen(&mut self, queue: DurableQueueId, seen: DedupEntry, lsn: Lsn) {
        let settings = self.queues.get(&queue).map(|(queue, _)| queue.settings());
        let window = settings.and_then(|settings| settings.dedup_window);
        if window.is_some_and(|window| seen.time.after(window) > self.now) {
            self.seen.entry(queue).or_default().push((seen, lsn));
        }
    }

    /// Adds a message; messages come by rising number. Returns whether the message stays in the journal, in
    /// `file`, and will be read again from there.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn message(&mut self, lsn: Lsn, payload: &[u8], file: Option<u32>) -> Result<bool, RecordError> {
        let record = MessageRecord::decode(payload)?;
        if let Some(id) =
            record.view().property(Property::MessageId).filter(|_| !Deaths::any(record.deaths.as_ref()))
        {
            // An id counts even if the queue has settled the message.
            let id: Arc<[u8]> = Arc::from(id);
            for queue in &record.queues {
                let numbered = record.sequences.iter().find(|(own, _)| own == queue);
                let sequence = numbered.map_or(0, |(_, sequence)| *sequence);
                let seen = DedupEntry { id: Arc::clone(&id), time: record.time, sequence };
                self.note_seen(*queue, seen, lsn);
            }
        }
        self.note_in_streams(lsn, &record);
        let waits = |queue: &DurableQueueId| {
            let record_ref = RecordRef { queue: *queue, lsn };
            !self.settled.has(&record_ref) && !self.pages.has(&record_ref)
        };
        let mut queues: Vec<DurableQueueId> = record.queues.iter().copied().filter(waits).collect();
        queues.retain(|queue| self.has_queue(*queue));
        queues.retain(|queue| self.lacks_in_stream(*queue, &record));
        if queues.is_empty() {
            return Ok(false);
        }
        let is_delayed = record.properties.delay_ms.is_some() && !Deaths::any(record.deaths.as_ref());
        // Few messages have a delivery count.
        let is_counted = |queue: &DurableQueueId| self.counts.contains_key(&RecordRef { queue: *queue, lsn });
        let has_stream = !record.sequences.is_empty();
        let file = file.filter(|_| self.taken_bytes >= self.leaving.after_bytes && !has_stream);
        if let Some(file) = file.filter(|_| !is_delayed && !queues.iter().any(is_counted)) {
            for id in queues {
                let Some((queue, waiting)) = self.queues.get_mut(&id) else { continue };
                let (before, message) = queue.found_in_journal(&record.view(), (lsn, file), record.time);
                waiting.extend(before.into_iter().map(Waiting::Entry));
                waiting.push(Waiting::InJournal(message));
            }
            return Ok(true);
        }
        let message = Message::store(&record.view(), None, &self.gauge);
        self.taken_bytes += message.charge();
        let publication = Publication::of_stored(&message);
        let address = Arc::new(record.address);
        let (address, deaths) = (AddressView::new(&address), record.deaths.as_ref());
        let arrival = Arrival { address: &address, deaths, lsn, now: record.time };
        for id in queues {
            let Some((queue, waiting)) = self.queues.get_mut(&id) else { continue };
            let record_ref = RecordRef { queue: id, lsn };
            let count = self.counts.get(&record_ref);
            let annotated = self.annotations.get(&record_ref).map(|annotations| {
                let history = deaths.map(|deaths| Deaths::clone(deaths)).unwrap_or_default();
                Arc::new(history.with_annotations(Some(annotations.clone())))
            });
            let arrival = Arrival { deaths: annotated.as_ref().or(deaths), ..arrival };
            if let Some((_, sequence)) = record.sequences.iter().find(|(queue, _)| *queue == id) {
                queue.next_sequence = *sequence;
            }
            let found =
                queue.found(&publication, &arrival, count, lsn < self.doubtful_below && !queue.is_stream());
            waiting.extend(found.into_iter().map(Waiting::Entry));
        }
        Ok(false)
    }

    /// Notes what the record of a message tells of the streams that it entered, whether or not they still have it.
    fn note_in_streams(&mut self, lsn: Lsn, record: &MessageRecord<'_>) {
        for (queue, sequence) in &record.sequences {
            let has_part = record.schedule.is_some()
                || record.rollup.is_some()
                || record.ended_schedule.is_some()
                || !record.dropped.is_empty();
            if !has_part || !self.is_stream(*queue) {
                continue;
            }
            let found = &mut self.streams.entry(*queue).or_default().found;
            if let Some(schedule) = &record.schedule {
                // A later record of the schedule itself was read before.
                let own = (Arc::clone(schedule), record.time, lsn);
                found.schedules.entry(*sequence).or_insert(own);
            }
            let gone = &mut found.gone;
            match record.rollup {
                Some(Rollup::All) => gone.below = gone.below.max(*sequence),
                Some(Rollup::Subject) => gone.note_subject(record.address.subject.as_bytes(), *sequence),
                None => {}
            }
            if let Some(ended) = record.ended_schedule {
                gone.note_subject(ended, *sequence);
            }
            let dropped = record.dropped.iter().filter(|(of, _)| of == queue);
            gone.ranges.extend(dropped.flat_map(|(_, ranges)| ranges));
        }
    }

    /// Whether a message is to be restored from its record: its queue is no stream, or a stream that neither has it in a
    /// page nor has removed it.
    fn lacks_in_stream(&self, queue: DurableQueueId, record: &MessageRecord<'_>) -> bool {
        if !self.is_stream(queue) {
            return true;
        }
        let Some((_, sequence)) = record.sequences.iter().find(|(own, _)| *own == queue) else {
            return false;
        };
        let is_known =
            |state: &StreamState| state.removed.contains(sequence) || state.paged.contains(sequence);
        !self.streams.get(&queue).is_some_and(is_known)
    }

    /// The pages that are not needed and may go after the next checkpoint; complete once all messages were
    /// added.
    pub fn gone_pages(&mut self) -> Vec<GonePage> {
        self.pages.take_gone()
    }

    /// Hands each queue to `add_queue`, and binds them. Returns the queues to wake once their effects can be
    /// carried out, and the numbers of the start.
    pub fn finish(
        mut self,
        topology: &mut Topology,
        add_queue: &mut dyn FnMut(Queue) -> Option<QueueId>,
    ) -> (Vec<Awakening>, Restored) {
        let mut restored = Restored::default();
        for (vhost, policies) in self.policies {
            topology.set_policies(vhost, policies);
        }
        for (vhost, name, kind, settings) in self.exchanges {
            let declared = topology.declare_exchange(vhost, name.as_bytes(), kind, settings);
            restored.passed_over += usize::from(declared.is_err());
        }
        let mut awakenings = Vec::new();
        let mut ids = BTreeMap::new();
        let (mut pages, mut counts) = (self.pages.take(self.was_clean), self.pages.counts(&self.counts));
        let mut annotations: BTreeMap<DurableQueueId, Vec<AnnotatedMessage>> = BTreeMap::new();
        for (record_ref, of_message) in self.annotations {
            let message = AnnotatedMessage { record_ref, annotations: of_message };
            annotations.entry(record_ref.queue).or_default().push(message);
        }
        let mut seen = self.seen;
        let as_found = (self.leaving.page_bytes, self.doubtful_below);
        for (durable, (mut queue, waiting)) in self.queues {
            let mut of_queue = seen.remove(&durable).unwrap_or_default();
            of_queue.sort_by_key(|(seen, _)| seen.time);
            if let Some(dedup) = queue.dedup() {
                let note =
                    |(seen, lsn): &(DedupEntry, Lsn)| dedup.note_at(&seen.id, seen.time, *lsn, seen.sequence);
                of_queue.iter().for_each(note);
            }
            queue.restore_counts(counts.remove(&durable).unwrap_or_default().into_iter());
            queue.restore_annotations(annotations.remove(&durable).unwrap_or_default().into_iter());
            let PagesOfQueue { ready: mut pages, delayed } = pages.remove(&durable).unwrap_or_default();
            if queue.is_stream() {
                let StreamState { mut found, consumers, .. } =
                    self.streams.remove(&durable).unwrap_or_default();
                found.consumers = consumers.into_values().collect();
                let pages = pages.remove(&0).unwrap_or_default();
                let entries = waiting.into_iter().filter_map(Waiting::into_entry).collect();
                queue.restore_stream(pages, entries, found, self.now);
                restored.messages += queue.ready_len();
                let (vhost, name) = (queue.vhost(), queue.name().clone());
                let added = add_queue(queue).filter(|id| topology.add_queue(vhost, &name, *id, None).is_ok());
                match added {
                    Some(id) => {
                        ids.insert(durable, id);
                        restored.queues += 1;
                        awakenings.push(Awakening { id, failed: Vec::new() });
                    }
                    None => restored.passed_over += 1,
                }
                continue;
            }
            delayed.into_iter().for_each(|(page, found)| queue.restore_delayed(page, found, self.now));
            let mut of_priority: BTreeMap<u8, Vec<Waiting>> = BTreeMap::new();
            for waiting in waiting {
                of_priority.entry(waiting.priority()).or_default().push(waiting);
            }
            let priorities: BTreeSet<u8> = pages.keys().chain(of_priority.keys()).copied().collect();
            let mut failed = Vec::new();
            for priority in priorities {
                let pages = pages.remove(&priority).unwrap_or_default();
                let waiting = of_priority.remove(&priority).unwrap_or_default();
                failed.extend(queue.restore(priority, put_in_order(pages, waiting), as_found));
            }
            queue.all_restored(self.now);
            restored.messages += queue.delayed_len() + queue.ready_len() + queue.unsettled_len();
            let (vhost, name) = (queue.vhost(), queue.name().clone());
            let Some(id) = add_queue(queue) else {
                restored.passed_over += 1;
                continue;
            };
            if topology.add_queue(vhost, &name, id, None).is_err() {
                restored.passed_over += 1;
                continue;
            }
            ids.insert(durable, id);
            restored.queues += 1;
            awakenings.push(Awakening { id, failed });
        }
        for BindingDefinition { vhost, exchange, key, arguments, target } in self.bindings {
            let target = match target {
                BindingTarget::Queue(queue) => ids.get(&queue).copied().map(Target::Queue),
                BindingTarget::Exchange(name) => Some(Target::Exchange(name)),
            };
            let bound =
                target.map(|target| topology.bind(vhost, exchange.as_bytes(), &key, &arguments, &target));
            restored.passed_over += usize::from(!matches!(bound, Some(Ok(_))));
        }
        (awakenings, restored)
    }

    /// The vhosts with something durable in them; known after [`Restore::define`].
    pub fn vhosts(&self) -> BTreeSet<VhostId> {
        self.queues
            .values()
            .map(|(queue, _)| queue.vhost())
            .chain(self.exchanges.iter().map(|(vhost, ..)| *vhost))
            .collect()
    }
}
