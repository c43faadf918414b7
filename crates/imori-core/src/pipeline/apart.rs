//! Messages that a stream stores in another form than the other queues of their route: counted, under another subject,
//! or as a batch.

use std::collections::{BTreeMap, BTreeSet};

use super::own::{append_alone, append_recorded};
use super::record::group_bytes;
use crate::confirm::{Confirm, Level, Lsn};
use crate::message::{
    Address, AddressView, BatchPublish, MessageView, Property, Publication, Receipt, Rollup, StreamAsks,
    StreamPublish, TOPIC_EXCHANGE,
};
use crate::name::Name;
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{NewRecord, RecordKind, encode_numbered};
use crate::stream::{StagedMessage, StreamRefusal};
use crate::time::Time;
use crate::world::World;

/// Appends a message to a locked stream in the form that the stream gives it.
///
/// # Errors
/// [`StreamRefusal`].
#[cold]
pub(super) fn append_apart<W: World>(
    world: &W,
    queue: &mut Queue,
    publication: &Publication<'_>,
    arrival: &Arrival<'_>,
    effects: &mut Effects,
) -> Result<Confirm, StreamRefusal> {
    let (own, now) = (arrival.address.subject(), arrival.now);
    let mapped = queue.stored_as(own, now);
    let subject = mapped.as_deref().unwrap_or(own);
    if let Some(batch) = publication.asks().and_then(|asked| asked.batch) {
        return stage(world, queue, publication, (subject, &batch), now, effects);
    }
    queue.stream_admits(publication, subject)?;
    let none = StreamPublish::default();
    let asked = publication.asks().unwrap_or(&none);
    let Some(increment) = asked.increment else {
        let lsn = append_alone(world, queue, publication, subject, now, effects);
        return Ok(confirm_of(queue, lsn));
    };
    let (value, body) = count(world, queue, subject, increment)?;
    let headers = StreamPublish { receipt: Receipt::Count(&value), ..*asked };
    let asks = StreamAsks { answer_to: publication.answer_to(), headers: Some(&headers) };
    let view = publication.view();
    let counted = Publication::new(view.properties, view.text, &body).asking(&asks);
    let lsn = append_alone(world, queue, &counted, subject, now, effects);
    note_count(queue, subject, &value);
    Ok(confirm_of(queue, lsn))
}

fn confirm_of(queue: &Queue, lsn: Lsn) -> Confirm {
    let level = queue.level();
    if lsn == Lsn::NONE { Confirm::NOW } else { Confirm::of(level, lsn) }
}

/// The value of a counter after an increment, and the body that tells it.
fn count<W: World>(
    world: &W,
    queue: &mut Queue,
    subject: &[u8],
    increment: &[u8],
) -> Result<(Vec<u8>, Vec<u8>), StreamRefusal> {
    let Some(stream) = &queue.stream else { return Err(StreamRefusal::IncrementDenied) };
    let forms = world.stream_forms();
    let before = match (stream.counters.get(subject), stream.index.last_of(subject)) {
        (Some(counter), Some(_)) => counter.value.to_vec(),
        (_, None) => b"0".to_vec(),
        // The message that had the value was deleted, so the one before it counts.
        (None, Some(last)) => {
            let entry = queue.read_message(last).ok_or(StreamRefusal::CounterOnDisk)?;
            forms.count(entry.message().view().body).ok_or(StreamRefusal::CounterBroken)?.into_vec()
        }
    };
    forms.add(&before, increment).ok_or(StreamRefusal::CounterBroken)
}

fn note_count(queue: &mut Queue, subject: &[u8], value: &[u8]) {
    let sequence = queue.last_sequence();
    if let Some(stream) = &mut queue.stream {
        stream.note_count(subject, sequence, Box::from(value));
    }
}

/// Adds a message to its batch, and stores the batch if this is its end.
fn stage<W: World>(
    world: &W,
    queue: &mut Queue,
    publication: &Publication<'_>,
    (subject, batch): (&[u8], &BatchPublish<'_>),
    now: Time,
    effects: &mut Effects,
) -> Result<Confirm, StreamRefusal> {
    let answer_to = publication.answer_to();
    let message = publication.stored(&queue.gauge);
    let Some(stream) = &mut queue.stream else { return Err(StreamRefusal::BatchDenied) };
    if stream.settings.is_sealed || stream.is_restoring {
        return Err(StreamRefusal::Sealed);
    }
    if !stream.settings.allows_batches {
        return Err(StreamRefusal::BatchDenied);
    }
    let staged = StagedMessage { subject: Name::new(subject), message };
    let Some(messages) = stream.batches.add(batch, staged, world.group_bytes_max(), now)? else {
        if let Some(to) = answer_to {
            queue.answer_staged(to);
        }
        return Ok(Confirm::NOW);
    };
    commit(world, queue, &messages, (batch.id, answer_to), now, effects)
}

/// Checks all messages of a batch, records them as one group, and appends them.
fn commit<W: World>(
    world: &W,
    queue: &mut Queue,
    messages: &[StagedMessage],
    (id, answer_to): (&[u8], Option<&[u8]>),
    now: Time,
    effects: &mut Effects,
) -> Result<Confirm, StreamRefusal> {
    let forms = world.stream_forms();
    let mut before = Before::default();
    let mut bodies = Vec::with_capacity(messages.len());
    for staged in messages {
        let view = staged.message.view();
        forms.with_asks(&view, now, &mut |asked| {
            before.check(queue, &view, asked, staged.subject.as_bytes(), now)?;
            bodies.push(before.count(world, queue, asked, staged.subject.as_bytes())?);
            Ok(())
        })?;
    }
    let own = Address::new(TOPIC_EXCHANGE, b"");
    let level = queue.level();
    let mut records = Vec::with_capacity(messages.len());
    let mut first = Lsn::NONE;
    let mut through = Lsn::NONE;
    if level > Level::Memory {
        let Some(durability) = queue.durability() else { return Err(StreamRefusal::BatchDenied) };
        for (sequence, (staged, body)) in (queue.last_sequence() + 1..).zip(messages.iter().zip(&bodies)) {
            let address = AddressView::passing(&own.exchange, staged.subject.as_bytes());
            let mut view = staged.message.view();
            view.body = body.as_deref().unwrap_or(view.body);
            let queues = (&[durability.id][..], &[(durability.id, sequence)][..]);
            let payload = encode_numbered(&view, &address, None, queues, now);
            records.push(NewRecord::new(RecordKind::Message, payload));
        }
        if group_bytes(&records) > world.group_bytes_max() {
            return Err(StreamRefusal::BatchTooLarge(messages.len() as u64));
        }
        let appended = world.append_group(records);
        (first, through) = (appended.first, appended.through);
    }
    let last = messages.len().saturating_sub(1);
    for (at, (staged, body)) in messages.iter().zip(&bodies).enumerate() {
        let subject = staged.subject.as_bytes();
        let address = AddressView::passing(&own.exchange, subject);
        let lsn = if first == Lsn::NONE { Lsn::NONE } else { first.plus(at) };
        let arrival = Arrival { address: &address, deaths: None, lsn, now };
        let view = staged.message.view();
        forms.with_asks(&view, now, &mut |asked| {
            let answer_to = answer_to.filter(|_| at == last);
            let receipt = Receipt::Batch(id, messages.len() as u64);
            let headers = StreamPublish { receipt, through: Some(through), batch: None, ..*asked };
            let asks = StreamAsks { answer_to, headers: Some(&headers) };
            match body {
                None => {
                    let publication = Publication::of_stored(&staged.message).asking(&asks);
                    append_recorded(queue, &publication, &arrival, effects);
                }
                Some(body) => {
                    let publication = Publication::new(view.properties, view.text, body).asking(&asks);
                    append_recorded(queue, &publication, &arrival, effects);
                    if let Some(value) = forms.count(body) {
                        note_count(queue, subject, &value);
                    }
                }
            }
            Ok(())
        })?;
    }
    Ok(confirm_of(queue, through))
}

/// What the messages of a batch before the present one would change.
#[derive(Default)]
struct Before {
    subjects: BTreeSet<Box<[u8]>>,
    ids: BTreeSet<Box<[u8]>>,
    counts: BTreeMap<Box<[u8]>, Vec<u8>>,
    len: u64,
}

impl Before {
    /// Checks the next message.
    fn check(
        &mut self,
        queue: &mut Queue,
        view: &MessageView<'_>,
        asked: &StreamPublish<'_>,
        subject: &[u8],
        now: Time,
    ) -> Result<(), StreamRefusal> {
        if asked.last_id.is_some() {
            return Err(StreamRefusal::BatchLastId);
        }
        if let Some(id) = view.property(Property::MessageId) {
            let is_known = queue.dedup().is_some_and(|dedup| dedup.find(id, now).is_some());
            if is_known || !self.ids.insert(Box::from(id)) {
                return Err(StreamRefusal::BatchDuplicate);
            }
        }
        let expected_of = asked.last_of_subject.map(|(_, of)| of.unwrap_or(subject));
        let is_changed = expected_of.is_some_and(|of| self.subjects.contains(of));
        if is_changed || self.len > 0 && asked.last_sequence.is_some() {
            return Err(StreamRefusal::BatchExpectation);
        }
        match asked.rollup {
            Some(Rollup::Subject) if self.subjects.contains(subject) => {
                return Err(StreamRefusal::BatchRollup(Rollup::Subject));
            }
            Some(Rollup::All) if self.len > 0 => return Err(StreamRefusal::BatchRollup(Rollup::All)),
            _ => {}
        }
        let asks = StreamAsks::from(asked);
        let publication = Publication::new(view.properties, view.text, view.body).asking(&asks);
        queue.stream_admits_behind(&publication, subject, self.len)?;
        self.subjects.insert(Box::from(subject));
        self.len += 1;
        Ok(())
    }

    /// The body of the next message, if it is an increment.
    fn count<W: World>(
        &mut self,
        world: &W,
        queue: &mut Queue,
        asked: &StreamPublish<'_>,
        subject: &[u8],
    ) -> Result<Option<Vec<u8>>, StreamRefusal> {
        let Some(increment) = asked.increment else { return Ok(None) };
        let (value, body) = match self.counts.get(subject) {
            Some(value) => world.stream_forms().add(value, increment).ok_or(StreamRefusal::CounterBroken)?,
            None => count(world, queue, subject, increment)?,
        };
        self.counts.insert(Box::from(subject), value);
        Ok(Some(body))
    }
}
