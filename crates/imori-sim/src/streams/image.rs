//! Compares the streams in a crash image with the clients' knowledge.

use std::collections::{BTreeMap, BTreeSet};

use imori_core::entries::PagePlace;
use imori_core::id::DurableQueueId;
use imori_core::message::Rollup;
use imori_core::policy::QueueKind;
use imori_core::record::{ConsumerState, Definition, MessageRecord, StreamRecord, Table};
use imori_store::disk::sim_disk::SimDisk;
use imori_store::manifest;
use imori_store::records::{Record, RecordType};
use imori_store::recovery::Recovered;
use imori_store::segment::Segments;

use super::ledger::Ledger;
use super::records::Stage;
use crate::broker_end::EndKind;
use crate::journal::{Store, last_checkpoint};
use crate::machine::Shared;
use crate::message_text::body;
use crate::property::Property;

/// Bytes of a page entry before its message, and where its sequence number is in them.
const ENTRY_HEAD_BYTES: usize = 14;
const SEQUENCE_AT: usize = 6;

/// A stream in a crash image.
#[derive(Debug, Default)]
struct ImageOfStream {
    /// The message of each number.
    messages: BTreeMap<u64, usize>,
    subjects: BTreeMap<u64, Box<[u8]>>,
    removed: BTreeSet<u64>,
    /// All messages below this one are gone, and by subject.
    below: u64,
    below_of: BTreeMap<Box<[u8]>, u64>,
    /// The state of each consumer, with the messages acknowledged since.
    consumers: BTreeMap<String, (ConsumerState, BTreeSet<u64>)>,
}

/// Checks what an end of this kind would leave of the streams.
pub(crate) fn check_stream_image(
    shared: &Shared,
    ledger: &Ledger,
    (disk, recovered): (SimDisk, &Recovered),
    kind: EndKind,
) {
    if ledger.streams.is_empty() {
        return;
    }
    match read(shared, ledger, disk, recovered) {
        Ok(image) => check(shared, ledger, &image, kind),
        Err(what) => shared.violate(Property::Durability, || format!("after a {kind:?}, {what}")),
    }
}

/// Reads the streams by name.
fn read(
    shared: &Shared,
    ledger: &Ledger,
    disk: SimDisk,
    recovered: &Recovered,
) -> Result<BTreeMap<String, ImageOfStream>, String> {
    let mut streams: BTreeMap<DurableQueueId, (String, ImageOfStream)> = BTreeMap::new();
    let rows = shared.log.borrow().definitions.with(recovered)?;
    for ((table, key), value) in &rows {
        let (definition, lsn) = Definition::of_row(*table, key, value)
            .map_err(|error| format!("a row cannot be read: {error}"))?;
        if let (Table::Queues, Definition::Queue { name, settings, .. }) = (table, definition)
            && settings.kind == QueueKind::Stream
        {
            streams.insert(DurableQueueId(lsn.0), (name.to_string(), ImageOfStream::default()));
        }
    }
    let of = |kind: RecordType| recovered.records.iter().filter(move |record| record.kind == kind);
    let unread = |record: &Record, error: &dyn std::fmt::Display| {
        format!("record {} cannot be read: {error}", record.lsn)
    };
    for record in of(RecordType::Stream) {
        let read = StreamRecord::decode(&record.payload).map_err(|error| unread(record, &error))?;
        if let Some((_, stream)) = streams.get_mut(&read.queue()) {
            stream.note(read);
        }
    }
    read_pages(ledger, disk, recovered, &mut streams)?;
    for record in of(RecordType::Message) {
        let message = MessageRecord::decode(&record.payload).map_err(|error| unread(record, &error))?;
        for (id, sequence) in &message.sequences {
            if let Some((_, stream)) = streams.get_mut(id) {
                stream.take(ledger, *sequence, message.body)?;
                stream.subjects.insert(*sequence, Box::from(message.address.subject.as_bytes()));
                stream.note_gone(&message, *id, *sequence);
            }
        }
    }
    for (_, stream) in streams.values_mut() {
        let ImageOfStream { messages, removed, subjects, below, below_of, .. } = stream;
        let is_below = |sequence: &u64| {
            let below_of = subjects.get(sequence).and_then(|subject| below_of.get(subject));
            sequence < below || below_of.is_some_and(|below| sequence < below)
        };
        messages.retain(|sequence, _| !removed.contains(sequence) && !is_below(sequence));
    }
    Ok(streams.into_values().collect())
}

fn read_pages(
    ledger: &Ledger,
    disk: SimDisk,
    recovered: &Recovered,
    streams: &mut BTreeMap<DurableQueueId, (String, ImageOfStream)>,
) -> Result<(), String> {
    let checkpoint = last_checkpoint(&recovered.records)?;
    let mark = imori_server::manifest_mark(&checkpoint);
    let manifest = manifest::read(&disk, &Store::manifest_settings(), mark);
    let (manifest, _) = manifest.map_err(|error| error.to_string())?;
    let opened = Segments::open(disk, &Store::segment_settings(), &manifest);
    let (segments, pages, _) = opened.map_err(|error| error.to_string())?;
    for facts in pages {
        let Some((_, stream)) = streams.get_mut(&DurableQueueId(facts.owner)) else { continue };
        let place = PagePlace { segment: facts.page.segment(), index: facts.page.index() };
        let settled = checkpoint.settled.iter().find(|(other, _)| *other == place);
        let page = segments.read(facts.page).map_err(|error| error.to_string())?;
        for entry in page.entries {
            let sequence = entry.payload.get(SEQUENCE_AT..ENTRY_HEAD_BYTES);
            let sequence = sequence.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
            if settled.is_some_and(|(_, settled)| settled.contains(sequence)) {
                stream.removed.insert(sequence);
            }
            let record = entry.payload.get(ENTRY_HEAD_BYTES..).unwrap_or_default();
            let read = MessageRecord::decode(record);
            let message = read.map_err(|error| format!("an entry of {place:?} cannot be read: {error}"))?;
            stream.take(ledger, sequence, message.body)?;
            stream.subjects.insert(sequence, Box::from(message.address.subject.as_bytes()));
        }
    }
    Ok(())
}

impl ImageOfStream {
    fn note(&mut self, record: StreamRecord) {
        let numbers = |ranges: Vec<(u64, u64)>| ranges.into_iter().flat_map(|(first, last)| first..=last);
        match record {
            StreamRecord::Removed(_, removed) => self.removed.extend(numbers(removed)),
            StreamRecord::Consumer(_, state) => {
                drop(self.consumers.insert(state.name.to_string(), (*state, BTreeSet::new())));
            }
            StreamRecord::ConsumerGone(_, name) => drop(self.consumers.remove(&name.to_string())),
            StreamRecord::Acked(_, name, acked) => {
                if let Some((_, since)) = self.consumers.get_mut(&name.to_string()) {
                    since.extend(numbers(acked));
                }
            }
            StreamRecord::Mark(..) | StreamRecord::Scheduled(..) => {}
        }
    }

    /// Notes the messages that left with another one, which has this number.
    fn note_gone(&mut self, message: &MessageRecord<'_>, id: DurableQueueId, sequence: u64) {
        let dropped = message.dropped.iter().filter(|(of, _)| *of == id).flat_map(|(_, ranges)| ranges);
        self.removed.extend(dropped.flat_map(|(first, last)| *first..=*last));
        let subject = match message.rollup {
            Some(Rollup::All) => {
                self.below = self.below.max(sequence);
                None
            }
            Some(Rollup::Subject) => Some(message.address.subject.as_bytes()),
            None => None,
        };
        for subject in subject.into_iter().chain(message.ended_schedule) {
            let below = self.below_of.entry(Box::from(subject)).or_default();
            *below = sequence.max(*below);
        }
    }

    fn take(&mut self, ledger: &Ledger, sequence: u64, bytes: &[u8]) -> Result<(), String> {
        let number = bytes.get(..8).and_then(|number| str::from_utf8(number).ok());
        let number = number.and_then(|number| usize::from_str_radix(number, 16).ok());
        let is_it = |number: &usize| {
            ledger.messages.get(*number).is_some_and(|sent| bytes == body(*number, sent.size))
        };
        let Some(number) = number.filter(is_it) else {
            return Err(format!("a message is there that nobody sent: {}", String::from_utf8_lossy(bytes)));
        };
        match self.messages.insert(sequence, number).filter(|other| *other != number) {
            Some(other) => Err(format!("{sequence} is the number of messages {other} and {number}")),
            None => Ok(()),
        }
    }
}

fn check(shared: &Shared, ledger: &Ledger, image: &BTreeMap<String, ImageOfStream>, kind: EndKind) {
    let now = shared.clock.get();
    for (index, state) in ledger.streams.iter().enumerate() {
        let name = &state.spec.name;
        let found = image.get(name);
        let is_wrong = match state.stage {
            Stage::There => found.is_none() && !state.spec.is_memory,
            Stage::Absent => found.is_some(),
            Stage::Making | Stage::Going => false,
        };
        if is_wrong {
            shared.violate(Property::Durability, || {
                format!("after a {kind:?}, `{name}` is there: {}, not {:?}", found.is_some(), state.stage)
            });
        }
        let Some(found) = found.filter(|_| state.stage == Stage::There && !state.spec.is_memory) else {
            continue;
        };
        for (sequence, message) in &state.at {
            let there = found.messages.get(sequence);
            if there.is_some_and(|there| there != message) {
                shared.violate(Property::Sequence, || {
                    format!("after a {kind:?}, {sequence} of `{name}` is {there:?} and not {message}")
                });
            }
            if there.is_none() && !ledger.may_be_gone(index, *sequence, now) {
                shared.violate(Property::Durability, || {
                    format!("after a {kind:?}, `{name}` lacks {sequence}, message {message}")
                });
            }
            let why = ledger.must_be_gone(index, *sequence, u64::MAX);
            if let Some(why) = why.filter(|_| there.is_some()) {
                shared.violate(Property::Purge, || {
                    format!("after a {kind:?}, `{name}` has {sequence}, which {why}")
                });
            }
        }
        for consumer in state.consumers.iter().filter(|consumer| !consumer.spec.is_free) {
            check_consumer(shared, ledger, (index, found), consumer, kind);
        }
    }
}

/// Checks that a consumer would deliver what is not acknowledged, and nothing else.
fn check_consumer(
    shared: &Shared,
    ledger: &Ledger,
    (stream, image): (usize, &ImageOfStream),
    consumer: &super::records::ConsumerState,
    kind: EndKind,
) {
    let name = &consumer.spec.name;
    let found = image.consumers.get(name);
    let is_wrong = match consumer.stage {
        Stage::There => found.is_none(),
        Stage::Absent => found.is_some(),
        Stage::Making | Stage::Going => false,
    };
    if is_wrong {
        shared.violate(Property::Durability, || {
            format!("after a {kind:?}, consumer `{name}` is there: {}", found.is_some())
        });
    }
    let Some((state, acked)) = found.filter(|_| consumer.stage == Stage::There) else { return };
    let at = &ledger.stream(stream).at;
    for (sequence, message) in at.iter().filter(|(sequence, _)| image.messages.contains_key(sequence)) {
        let sent = ledger.message(*message);
        let is_pending = state.pending.iter().any(|(pending, ..)| pending == sequence);
        let is_ahead = *sequence >= state.next && !state.done.contains(sequence);
        let comes = (is_pending || is_ahead) && !acked.contains(sequence) && consumer.spec.wants(sent.key);
        let answered = consumer.acks.get(sequence);
        if comes && answered.is_some_and(Option::is_some) {
            shared.violate(Property::Durability, || {
                format!("after a {kind:?}, `{name}` delivers {sequence} again, which was acknowledged")
            });
        }
        // What came before the consumer, others may have acknowledged to its predecessor.
        let is_known = consumer.life == 1 || sent.at > consumer.made_at;
        if !comes && is_known && answered.is_none() && consumer.spec.wants(sent.key) {
            shared.violate(Property::Durability, || {
                format!("after a {kind:?}, `{name}` never delivers {sequence}, which nobody acknowledged")
            });
        }
    }
}
