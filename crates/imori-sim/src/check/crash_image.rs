//! Reads the disk image that a crash would leave, without the broker's recovery, and compares it
//! with the clients' knowledge.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::confirm::Lsn;
use imori_core::delivery::{DedupEntry, PurgedRecords, RecordRef};
use imori_core::entries::PagePlace;
use imori_core::id::DurableQueueId;
use imori_core::record::{
    Definition, MessageRecord, Table, decode_counts, decode_dedup_entries, decode_purge, decode_settle,
};
use imori_store::disk::sim_disk::{self, SimDisk, State};
use imori_store::manifest;
use imori_store::records::RecordType;
use imori_store::recovery::{Recovered, recover};
use imori_store::segment::Segments;

use crate::broker_end::EndKind;
use crate::client::{body, shared_name};
use crate::journal::{Store, last_checkpoint};
use crate::machine::Shared;
use crate::model::Cancel;
use crate::model::{Mode, Model, Outcome, Reads, SubscriptionRecord, To};
use crate::property::Property;

/// The messages in a crash image, by the indices of the model.
#[derive(Debug, Default)]
struct Image {
    /// The record of each waiting message, by queue and message.
    waiting: BTreeMap<(usize, usize), Lsn>,
    /// Messages with a record for a queue that they were sent to.
    recorded: BTreeMap<usize, Lsn>,
    settled: BTreeSet<RecordRef>,
    /// Rejected messages, which are stored but never delivered again.
    rejected: BTreeSet<RecordRef>,
    /// Messages in pages; their journal records do not count.
    paged: BTreeSet<RecordRef>,
    /// Messages in pages that are not settled there.
    unsettled: BTreeSet<RecordRef>,
    /// Messages whose id is known from a record, by queue and message.
    ids: BTreeSet<(usize, usize)>,
    queues: BTreeMap<DurableQueueId, usize>,
    /// Purged messages, as ranges of records.
    purged: Vec<PurgedRecords>,
    has_forgotten: bool,
}

/// Checks the queues in the image that this kind of end would leave of `state`.
pub(crate) fn check_image(shared: &Shared, model: &Model, state: &State, kind: EndKind) {
    let Some((disk, recovered)) = recover_image(shared, state, kind) else { return };
    match Image::read(shared, model, disk, &recovered) {
        Ok(image) => image.check(shared, model, kind),
        Err(what) => shared.violate(Property::Durability, || format!("after a {kind:?}, {what}")),
    }
}

/// The disk that this kind of end would leave of `state`, and the journal on it.
pub(crate) fn recover_image(shared: &Shared, state: &State, kind: EndKind) -> Option<(SimDisk, Recovered)> {
    let left = match kind {
        EndKind::Kill | EndKind::Clean => state.clone(),
        EndKind::PowerCut => state.crash(&mut sim_disk::Random(shared.random.next())),
    };
    let disk = SimDisk::new(left);
    let recovered = match recover(&disk, &shared.settings) {
        Ok(recovered) => recovered,
        Err(error) => {
            shared.violate(Property::Recovery, || format!("{error}"));
            return None;
        }
    };
    if !recovered.report.damaged.is_empty() {
        shared.violate(Property::Recovery, || format!("{}", recovered.report));
        return None;
    }
    Some((disk, recovered))
}

impl Image {
    fn read(shared: &Shared, model: &Model, disk: SimDisk, recovered: &Recovered) -> Result<Image, String> {
        let mut image = Image { has_forgotten: recovered.report.floor.is_some(), ..Image::default() };
        image.queues = queues(shared, model, recovered)?;
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Settle) {
            let read = decode_settle(&record.payload, &mut |record_ref| {
                image.settled.insert(record_ref);
            });
            read.map_err(|error| format!("record {} cannot be read: {error}", record.lsn))?;
        }
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Count) {
            let read = decode_counts(&record.payload, &mut |count| {
                if count.is_rejected {
                    image.rejected.insert(count.record_ref);
                }
            });
            read.map_err(|error| format!("record {} cannot be read: {error}", record.lsn))?;
        }
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Seen) {
            let read = decode_dedup_entries(&record.payload, &mut |queue, seen| {
                image.note_seen(model, queue, &seen);
            });
            read.map_err(|error| format!("record {} cannot be read: {error}", record.lsn))?;
        }
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Purge) {
            let read = decode_purge(&record.payload);
            image
                .purged
                .extend(read.map_err(|error| format!("record {} cannot be read: {error}", record.lsn))?);
        }
        image.read_pages(model, disk, recovered)?;
        for record in recovered.records.iter().filter(|record| record.kind == RecordType::Message) {
            let lsn = Lsn(record.lsn.0);
            let read = MessageRecord::decode(&record.payload);
            let message = read.map_err(|error| format!("record {lsn:?} cannot be read: {error}"))?;
            image.note_id(model, &message);
            let queues = message.queues.iter().copied();
            let record_refs = queues.map(|queue| RecordRef { queue, lsn });
            let unpaged =
                record_refs.filter(|record_ref| !image.paged.contains(record_ref)).collect::<Vec<_>>();
            let purged = unpaged.iter().filter(|record_ref| image.is_purged(record_ref));
            let purged: Vec<RecordRef> = purged.copied().collect();
            image.settled.extend(purged);
            image.take(model, &unpaged, &message)?;
        }
        Ok(image)
    }

    /// Notes the id in a message's record, which counts even if the message is settled.
    fn note_id(&mut self, model: &Model, record: &MessageRecord<'_>) {
        let Some(number) = number_of(record.body).filter(|_| record.deaths.is_none()) else { return };
        if model.messages.get(number).is_some_and(|message| message.duplicate.is_some()) {
            let queues = record.queues.iter().filter_map(|id| self.queues.get(id));
            self.ids.extend(queues.map(|queue| (*queue, number)));
        }
    }

    /// Notes an id that was recorded again. The record does not tell which message it belonged to.
    fn note_seen(&mut self, model: &Model, queue: DurableQueueId, seen: &DedupEntry) {
        let is_of = |first: &usize| *seen.id == *shared_name(*first).as_bytes();
        let same = model.same.iter().find(|(first, _)| is_of(first));
        if let (Some(queue), Some((_, same))) = (self.queues.get(&queue), same) {
            self.ids.extend(same.iter().map(|number| (*queue, *number)));
        }
    }

    /// Reads the messages in segments, except those that the checkpoint lists as settled.
    fn read_pages(&mut self, model: &Model, disk: SimDisk, recovered: &Recovered) -> Result<(), String> {
        let checkpoint = last_checkpoint(&recovered.records)?;
        let mark = imori_server::manifest_mark(&checkpoint);
        let manifest = manifest::read(&disk, &Store::manifest_settings(), mark);
        let (manifest, _) = manifest.map_err(|error| error.to_string())?;
        let opened = Segments::open(disk, &Store::segment_settings(), &manifest);
        let (segments, pages, report) = opened.map_err(|error| error.to_string())?;
        if report.is_damaged() {
            return Err(format!("segments are damaged: {report}"));
        }
        for facts in pages {
            let place = PagePlace { segment: facts.page.segment(), index: facts.page.index() };
            let settled = checkpoint.settled.iter().find(|(other, _)| *other == place);
            let page = segments.read(facts.page).map_err(|error| error.to_string())?;
            if page.damage.is_some() {
                return Err(format!("a page is damaged: {:?}", page.damage));
            }
            for entry in page.entries {
                let record_ref = RecordRef { queue: DurableQueueId(facts.owner), lsn: Lsn(entry.lsn.0) };
                let is_settled = settled.is_some_and(|(_, settled)| settled.contains(entry.lsn.0));
                let is_purged = self.is_purged(&record_ref);
                // A message that was due and paged again may be in a page of delayed messages too,
                // settled there.
                self.paged.insert(record_ref);
                if is_purged {
                    self.settled.insert(record_ref);
                }
                if is_purged || is_settled || !self.unsettled.insert(record_ref) {
                    continue;
                }
                let record = entry.payload.get(page_entry_head(&entry.payload)..).unwrap_or_default();
                let read = MessageRecord::decode(record);
                let message =
                    read.map_err(|error| format!("an entry of {place:?} cannot be read: {error}"))?;
                self.take(model, &[record_ref], &message)?;
            }
        }
        Ok(())
    }

    /// Whether a purge names this record.
    fn is_purged(&self, record_ref: &RecordRef) -> bool {
        let RecordRef { queue, lsn } = *record_ref;
        self.purged.iter().any(|purged| purged.queue == queue && (purged.first..=purged.last).contains(&lsn))
    }

    fn take(
        &mut self,
        model: &Model,
        record_refs: &[RecordRef],
        record: &MessageRecord<'_>,
    ) -> Result<(), String> {
        let number = number_of(record.body).unwrap_or(usize::MAX);
        let sent = model.messages.get(number).filter(|sent| sent.is_persistent && sent.sent_at.is_some());
        let sent = sent.filter(|sent| !sent.is_too_large);
        let Some(sent) = sent else {
            return Err(format!("message {number} is there, which was not sent to be kept"));
        };
        if record.body != body(number, sent.size) {
            return Err(format!("message {number} is not as it was sent"));
        }
        for RecordRef { queue: id, lsn } in record_refs.iter().copied() {
            let Some(queue) = self.queues.get(&id).copied() else { continue };
            let spec = model.queue(queue);
            let is_meant = match spec.is_dead_letter_queue {
                true => record.deaths.is_some(),
                false => model.is_for(number, queue),
            };
            if !is_meant {
                return Err(format!("message {number} is in `{}`, where it was not sent", spec.name));
            }
            if !spec.is_dead_letter_queue {
                self.recorded.insert(number, lsn);
            }
            let is_twice = !self.settled.contains(&RecordRef { queue: id, lsn })
                && self.waiting.insert((queue, number), lsn).is_some();
            if is_twice {
                return Err(format!("message {number} is twice in `{}`", spec.name));
            }
        }
        Ok(())
    }

    fn check(&self, shared: &Shared, model: &Model, kind: EndKind) {
        self.check_kept(shared, model, kind);
        self.check_dead(shared, model, kind);
        self.check_settled(shared, model, kind);
        self.check_purged(shared, model, kind);
        self.check_one_place(shared, model, kind);
        self.check_order(shared, model, kind);
        self.check_ids(shared, model, kind);
        if !self.has_forgotten {
            self.check_transactions(shared, model, kind);
        }
    }

    /// Checks that messages that are confirmed and not settled are there.
    fn check_kept(&self, shared: &Shared, model: &Model, kind: EndKind) {
        let is_plain = |queue: usize| {
            let spec = model.queue(queue);
            let is_read_by = |mode| {
                let reads = Reads::Queue(queue);
                model.subscriptions.iter().any(|other| other.mode == mode && other.reads == reads)
            };
            !(spec.is_bounded || spec.ttl_ms.is_some() || spec.has_delivery_limit || is_read_by(Mode::Auto))
        };
        for queue in (0..model.queues.len()).filter(|queue| is_plain(*queue)) {
            for (number, message) in model.messages.iter().enumerate() {
                let is_gone = |number: usize| {
                    model.last_deliveries.get(&(number, queue)).is_some_and(|last| {
                        matches!(last.outcome, Outcome::Accept | Outcome::Reject | Outcome::Auto)
                    })
                };
                let is_for = model.is_for(number, queue);
                let is_there = |other: usize| self.waiting.contains_key(&(queue, other)) || is_gone(other);
                if is_for
                    && !is_gone(number)
                    && message.cancel == Cancel::Not
                    && !message.has_ttl
                    && !model.may_be_lost(number, queue)
                    && !model.may_be_purged(number, queue)
                    && model.is_kept(number, queue, kind, shared.step.get())
                    && !self.waiting.contains_key(&(queue, number))
                    && !model.is_duplicate(number, queue, is_there)
                {
                    let name = &model.queue(queue).name;
                    shared.violate(Property::Durability, || {
                        format!("after a {kind:?}, message {number} of `{name}` is lost, which was confirmed")
                    });
                }
            }
        }
    }

    /// Checks that rejected messages are in their queue or in its dead-letter queue.
    fn check_dead(&self, shared: &Shared, model: &Model, kind: EndKind) {
        for ((number, queue), last) in &model.last_deliveries {
            let Some(dead) = model.queue(*queue).dead_letter else { continue };
            let is_settled =
                model.last_deliveries.get(&(*number, dead)).is_some_and(|last| last.outcome != Outcome::Open);
            // A delivery to an automatic reader may be on its way.
            let reads = [Reads::Queue(dead), Reads::Queue(*queue)];
            let may_be_gone = is_settled
                || model.messages.get(*number).is_some_and(|message| message.has_ttl)
                || model
                    .subscriptions
                    .iter()
                    .any(|other| other.mode == Mode::Auto && reads.contains(&other.reads));
            if last.outcome == Outcome::Reject
                && !may_be_gone
                && model.is_kept(*number, *queue, kind, shared.step.get())
                && !model.may_be_lost(*number, *queue)
                && !model.may_be_purged(*number, *queue)
                && model.queue(dead).keeps(kind)
                && !self.waiting.contains_key(&(*queue, *number))
                && !self.waiting.contains_key(&(dead, *number))
            {
                let name = &model.queue(*queue).name;
                shared.violate(Property::Atomicity, || {
                    format!("after a {kind:?}, message {number} is lost on its way from `{name}` to the dead")
                });
            }
        }
    }

    /// Checks that messages whose settle is certain do not return.
    fn check_settled(&self, shared: &Shared, model: &Model, kind: EndKind) {
        for ((queue, number), lsn) in &self.waiting {
            let last = model.last_deliveries.get(&(*number, *queue));
            let is_rejected = || {
                let of_queue = self.queues.iter().filter(|(_, named)| *named == queue);
                of_queue
                    .map(|(id, _)| RecordRef { queue: *id, lsn: *lsn })
                    .any(|held| self.rejected.contains(&held))
            };
            let is_over = last.is_some_and(|last| match last.outcome {
                Outcome::Accept => last.is_processed,
                // It may wait there until its dead-letter queue has room.
                Outcome::Reject => last.is_processed && !is_rejected(),
                _ => false,
            });
            let is_cancelled =
                model.messages.get(*number).is_some_and(|message| message.cancel == Cancel::Done);
            if (is_over || is_cancelled) && model.queue(*queue).keeps(kind) {
                let name = &model.queue(*queue).name;
                shared.violate(Property::Durability, || {
                    format!("after a {kind:?}, message {number} ({lsn:?}) is back in `{name}`: {last:?}")
                });
            }
        }
    }

    /// Checks that messages that were certainly purged, and never delivered, do not return.
    fn check_purged(&self, shared: &Shared, model: &Model, kind: EndKind) {
        for (queue, number) in self.waiting.keys().copied() {
            let Some(purge) = model.surely_purged(number, queue, kind) else { continue };
            // A delivery that no client has read may be on its way.
            let may_have = |record: &SubscriptionRecord| {
                let is_read = model.sessions.get(record.session).is_some_and(|session| {
                    let pipe = shared.network.pipe(session.pipe);
                    session.is_crashed || pipe.is_over && !pipe.has_last_bytes
                });
                record.reads == Reads::Queue(queue)
                    && purge.done_at.is_some_and(|done| record.sent_at <= done)
                    && !is_read
            };
            if !model.subscriptions.iter().any(may_have) {
                let name = &model.queue(queue).name;
                shared.violate(Property::Purge, || {
                    format!("after a {kind:?}, message {number} is back in `{name}`: {purge:?}")
                });
            }
        }
    }

    /// Checks that a dead letter is in one place only.
    fn check_one_place(&self, shared: &Shared, model: &Model, kind: EndKind) {
        for (queue, number) in self.waiting.keys() {
            let dead = model.queue(*queue).dead_letter;
            if dead.is_some_and(|dead| self.waiting.contains_key(&(dead, *number))) {
                shared.violate(Property::Atomicity, || {
                    let name = &model.queue(*queue).name;
                    format!("after a {kind:?}, message {number} is in `{name}` and dead as well")
                });
            }
        }
    }

    /// Checks that each publisher's messages are in order.
    fn check_order(&self, shared: &Shared, model: &Model, kind: EndKind) {
        let mut by_queue: Vec<(usize, Lsn, usize)> =
            self.waiting.iter().map(|((queue, number), lsn)| (*queue, *lsn, *number)).collect();
        by_queue.sort_unstable();
        let mut latest = BTreeMap::<(usize, usize), (u64, u64)>::new();
        for (queue, _, number) in by_queue {
            let Some(message) = model.messages.get(number) else { continue };
            if model.queue(queue).is_dead_letter_queue || message.due.is_some() {
                continue;
            }
            let latest = latest.entry((queue, message.publisher)).or_default();
            if message.key < *latest {
                shared.violate(Property::Order, || {
                    format!("after a {kind:?}, message {number} stands behind a later one of its publisher")
                });
            }
            *latest = message.key;
        }
    }

    /// Checks that the ids of accepted messages are known throughout their window.
    fn check_ids(&self, shared: &Shared, model: &Model, kind: EndKind) {
        let now = shared.clock.get();
        for (number, queue) in model.taken.keys().copied() {
            let is_due =
                |window| model.span(number, queue).is_some_and(|span| span.earliest.after(window) > now);
            if model.queue(queue).window.is_some_and(is_due)
                && model.is_kept(number, queue, kind, shared.step.get())
                && !model.may_be_lost(number, queue)
                && !self.ids.contains(&(queue, number))
            {
                let name = &model.queue(queue).name;
                shared.violate(Property::Dedup, || {
                    format!("after a {kind:?}, `{name}` would take a message with the id of {number} again")
                });
            }
        }
    }

    /// Checks that each transaction is there as a whole or not at all.
    fn check_transactions(&self, shared: &Shared, model: &Model, kind: EndKind) {
        for transaction in &model.transactions {
            let mut parts: Vec<bool> = Vec::new();
            for number in &transaction.messages {
                let Some(message) = model.messages.get(*number).filter(|message| message.is_persistent)
                else {
                    continue;
                };
                if let To::Queue(queue) = message.to
                    && !model.is_repeated(*number)
                    && model.queue(queue).keeps(EndKind::Kill)
                {
                    parts.push(self.recorded.contains_key(number));
                }
            }
            // After its session ended, others may accept the messages.
            let is_there = model.sessions.get(transaction.session).is_some_and(|own| own.ended_at.is_none());
            for (number, queue) in transaction.accepted.iter().filter(|_| is_there) {
                // A message in a dead-letter queue has a record of its own.
                if model.queue(*queue).is_dead_letter_queue {
                    continue;
                }
                let lsn = self.recorded.get(number);
                let id = self.queues.iter().find(|(_, other)| *other == queue);
                if let (Some(lsn), Some((id, _))) = (lsn, id) {
                    parts.push(self.settled.contains(&RecordRef { queue: *id, lsn: *lsn }));
                }
            }
            if parts.contains(&true) && parts.contains(&false) {
                shared.violate(Property::Atomicity, || {
                    format!("after a {kind:?}, {parts:?} is left of a transaction: {transaction:?}")
                });
            }
        }
    }
}

/// The number of the message with this body.
fn number_of(body: &[u8]) -> Option<usize> {
    let text = str::from_utf8(body.get(..8)?).ok()?;
    usize::from_str_radix(text, 16).ok()
}

/// Bytes of a page entry before its message record: version, flags, failures, sequence, and in the
/// version for delayed messages the due time and the priority.
fn page_entry_head(payload: &[u8]) -> usize {
    const DELAYED_VERSION: u8 = 6;
    let is_delayed = payload.first() == Some(&DELAYED_VERSION);
    1 + 1 + 4 + 8 + if is_delayed { 8 + 1 } else { 0 }
}

/// The durable queues in the image.
fn queues(
    shared: &Shared,
    model: &Model,
    recovered: &Recovered,
) -> Result<BTreeMap<DurableQueueId, usize>, String> {
    let rows = shared.log.borrow().definitions.with(recovered)?;
    let mut queues = BTreeMap::new();
    for ((table, key), value) in &rows {
        let read = Definition::of_row(*table, key, value);
        let (definition, lsn) = read.map_err(|error| format!("a row cannot be read: {error}"))?;
        if let (Table::Queues, Definition::Queue { name, .. }) = (table, definition) {
            let known = model.queues.iter().position(|spec| spec.name.as_bytes() == name.as_bytes());
            let Some(known) = known else { return Err(format!("nobody declared `{name}`")) };
            queues.insert(DurableQueueId(lsn.0), known);
        }
    }
    Ok(queues)
}
