//! Messages that a stream stores in another form than the other queues of their route: counted, under another subject,
//! or as a batch.

use std::collections::{BTreeMap, BTreeSet};

use super::own::{append_alone, append_recorded, record_of};
use super::proposal::Proposal;
use crate::confirm::{Confirm, Level, Lsn};
use crate::message::{
    Address, AddressView, BatchPublish, Properties, Property, Publication, Receipt, Rollup, StreamAsks,
    StreamPublish, TOPIC_EXCHANGE,
};
use crate::name::Name;
use crate::queue::{Arrival, Effects, Queue};
use crate::stream::{StagedMessage, StreamRefusal, add};
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
    if let Some(batch) = publication.asks().and_then(|asked| asked.batch.as_ref()) {
        return stage(world, queue, publication, (subject, batch), now, effects);
    }
    queue.stream_admits(publication, subject)?;
    let Some(increment) = publication.asks().and_then(|asked| asked.increment.as_deref()) else {
        let lsn = append_alone(world, queue, publication, subject, now, effects);
        return Ok(confirm_of(queue, lsn));
    };
    let value = count(queue, subject, increment)?;
    let asks = StreamAsks {
        answer_to: publication.answer_to(),
        headers: publication.asks(),
        receipt: Receipt::Count(&value),
        ..StreamAsks::default()
    };
    let view = publication.view();
    let properties = view.properties.of_count();
    let counted = Publication::new(&properties, view.text, &value).asking(&asks);
    let lsn = append_alone(world, queue, &counted, subject, now, effects);
    Ok(confirm_of(queue, lsn))
}

fn confirm_of(queue: &Queue, lsn: Lsn) -> Confirm {
    let level = queue.level();
    if lsn == Lsn::NONE { Confirm::NOW } else { Confirm::of(level, lsn) }
}

/// The value of a counter after an increment.
fn count(queue: &mut Queue, subject: &[u8], increment: &[u8]) -> Result<Vec<u8>, StreamRefusal> {
    let Some(stream) = &queue.stream else { return Err(StreamRefusal::IncrementDenied) };
    let before = match (stream.counters.get(subject), stream.index.last_of(subject)) {
        (Some(counter), Some(_)) => counter.value.to_vec(),
        (_, None) => b"0".to_vec(),
        // The message that had the value was deleted, so the one before it counts.
        (None, Some(last)) => {
            let entry = queue.read_message(last).ok_or(StreamRefusal::CounterOnDisk)?;
            let view = entry.message().view();
            let value = view.properties.is_count.then_some(view.body);
            value.ok_or(StreamRefusal::CounterBroken)?.to_vec()
        }
    };
    add(&before, increment).ok_or(StreamRefusal::CounterBroken)
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
    let asked = publication.asks().map(StreamPublish::to_owned).unwrap_or_default();
    let staged = StagedMessage { subject: Name::new(subject), message, asked };
    let Some(messages) = stream.batches.add(batch, staged, world.group_bytes_max(), now)? else {
        if let Some(to) = answer_to {
            queue.answer_staged(to);
        }
        return Ok(Confirm::NOW);
    };
    commit(world, queue, &messages, (&batch.id, answer_to), now, effects)
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
    let mut before = Before::default();
    let mut values = Vec::with_capacity(messages.len());
    for staged in messages {
        before.check(queue, staged, now)?;
        values.push(before.count(queue, staged)?);
    }
    if queue.level() > Level::Memory && queue.durability().is_none() {
        return Err(StreamRefusal::BatchDenied);
    }
    let own = Address::new(TOPIC_EXCHANGE, b"");
    let counted = messages.iter().zip(&values).map(|(staged, value)| {
        let properties = *staged.message.view().properties;
        if value.is_some() { properties.of_count() } else { properties }
    });
    let properties: Vec<Properties> = counted.collect();
    let asks = messages.iter().map(|staged| StreamAsks::from(&staged.asked));
    let asks: Vec<StreamAsks<'_>> = asks.collect();
    let mut publications = Vec::with_capacity(messages.len());
    for (((staged, value), properties), asks) in messages.iter().zip(&values).zip(&properties).zip(&asks) {
        let publication = match value {
            None => Publication::of_stored(&staged.message),
            Some(value) => Publication::new(properties, staged.message.view().text, value),
        };
        publications.push(publication.asking(asks));
    }
    let mut proposal = Proposal::default();
    let mut places = Vec::with_capacity(messages.len());
    for (publication, staged) in publications.iter().zip(messages) {
        let address = AddressView::passing(&own.exchange, staged.subject.as_bytes());
        places.push(proposal.add(record_of(queue, publication, (&address, None), now)));
    }
    if proposal.bytes() > world.group_bytes_max() {
        queue.give_up_sequences();
        return Err(StreamRefusal::BatchTooLarge(messages.len() as u64));
    }
    let recorded = proposal.record_together(world);
    let through = recorded.through();
    let last = messages.len().saturating_sub(1);
    let of_each = publications.into_iter().zip(messages).zip(places);
    for (at, ((publication, staged), place)) in of_each.enumerate() {
        let address = AddressView::passing(&own.exchange, staged.subject.as_bytes());
        let arrival = Arrival { address: &address, deaths: None, lsn: recorded.at(place), now };
        let asks = StreamAsks {
            answer_to: answer_to.filter(|_| at == last),
            headers: Some(&staged.asked),
            receipt: Receipt::Batch(id, messages.len() as u64),
            through: Some(through),
        };
        append_recorded(queue, &publication.asking(&asks), &arrival, effects);
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
    fn check(&mut self, queue: &mut Queue, staged: &StagedMessage, now: Time) -> Result<(), StreamRefusal> {
        let StagedMessage { subject, message, asked } = staged;
        let (subject, view) = (subject.as_bytes(), message.view());
        if asked.last_id.is_some() {
            return Err(StreamRefusal::BatchLastId);
        }
        if let Some(id) = view.property(Property::MessageId) {
            let is_known = queue.dedup().is_some_and(|dedup| dedup.find(id, now).is_some());
            if is_known || !self.ids.insert(Box::from(id)) {
                return Err(StreamRefusal::BatchDuplicate);
            }
        }
        let expected_of = asked.last_of_subject.as_ref().map(|(_, of)| of.as_deref().unwrap_or(subject));
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
        let publication = Publication::of_stored(message).asking(&asks);
        queue.stream_admits_behind(&publication, subject, self.len)?;
        self.subjects.insert(Box::from(subject));
        self.len += 1;
        Ok(())
    }

    /// The value after the next message, if it is an increment.
    fn count(&mut self, queue: &mut Queue, staged: &StagedMessage) -> Result<Option<Vec<u8>>, StreamRefusal> {
        let Some(increment) = staged.asked.increment.as_deref() else { return Ok(None) };
        let subject = staged.subject.as_bytes();
        let value = match self.counts.get(subject) {
            Some(value) => add(value, increment).ok_or(StreamRefusal::CounterBroken)?,
            None => count(queue, subject, increment)?,
        };
        self.counts.insert(Box::from(subject), value.clone());
        Ok(Some(value))
    }
}
