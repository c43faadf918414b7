//! Messages that a stream publishes itself: markers of deleted subjects, and what its schedules publish.

use std::sync::Arc;

use super::proposal::record_one;
use crate::confirm::{Level, Lsn};
use crate::message::{
    Address, AddressView, Deaths, Property, Publication, Rollup, ScheduleTtl, StreamAsks, StreamPublish,
    TOPIC_EXCHANGE,
};
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{InStreams, NewRecord, RecordKind, encode_for_streams};
use crate::stream::{ArchivedMessage, StreamMessage};
use crate::time::Time;
use crate::world::{StreamServices as _, World};

/// Publishes what a locked stream has to publish now.
pub(crate) fn publish_own<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    publish_markers(world, queue, now, effects);
    publish_scheduled(world, queue, now, effects);
}

fn publish_markers<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    let Some(stream) = queue.stream.as_mut().filter(|stream| !stream.unmarked.is_empty()) else { return };
    let unmarked = std::mem::take(&mut stream.unmarked);
    let Some(ttl) = stream.settings.marker_ttl else { return };
    let mut form = world.streams().forms().form(&StreamMessage::Marker { ttl }, world.header_readers());
    form.properties.is_marker = true;
    form.properties.expiration_ms = u32::try_from(ttl.as_millis()).ok();
    for subject in unmarked {
        // A newer message of the subject needs no marker.
        if queue.stream.as_ref().is_some_and(|stream| stream.index.count_of(subject.as_bytes()) > 0) {
            continue;
        }
        let headers = StreamPublish { rollup: Some(Rollup::Subject), ..StreamPublish::default() };
        let body = form.body.as_deref().unwrap_or_default();
        let publication = Publication::new(&form.properties, &form.text, body);
        publish_form(world, queue, subject.as_bytes(), publication, &headers, now, effects);
    }
}

/// Publishes what the schedules of a stream publish now.
fn publish_scheduled<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    loop {
        let Some(stream) = &mut queue.stream else { return };
        stream.is_schedule_on_disk = false;
        let Some((_, sequence)) = stream.roles.first_due().filter(|(due, _)| *due <= now) else { return };
        let Some(mut scheduled) = stream.roles.scheduled(sequence).cloned() else { return };
        let schedule = Arc::clone(&scheduled.schedule);
        let source = schedule.source.as_ref().and_then(|source| stream.index.last_of(source.as_bytes()));
        let entry = queue.read_message(sequence);
        let content = source.map_or_else(|| entry.clone(), |source| queue.read_message(source));
        let (Some(entry), Some(content)) = (entry, content) else {
            if let Some(stream) = &mut queue.stream {
                stream.is_schedule_on_disk = true;
            }
            return;
        };
        let next = if schedule.times.is_repeating() { schedule.times.next(now, now) } else { None };
        let message =
            StreamMessage::Scheduled { entry: &entry, schedule: &schedule, content: &content, next };
        let mut form = world.streams().forms().form(&message, world.header_readers());
        form.properties.never_expires = schedule.ttl == Some(ScheduleTtl::Never);
        form.properties.expiration_ms = match schedule.ttl {
            Some(ScheduleTtl::After(ttl)) => u32::try_from(ttl.as_millis()).ok(),
            Some(ScheduleTtl::Never) | None => None,
        };
        let headers = StreamPublish {
            rollup: schedule.is_rollup.then_some(Rollup::Subject),
            replaced: next.is_none().then_some(sequence),
            ..StreamPublish::default()
        };
        let stored = content.message().view().body;
        let publication =
            Publication::new(&form.properties, &form.text, form.body.as_deref().unwrap_or(stored));
        publish_form(world, queue, schedule.target.as_bytes(), publication, &headers, now, effects);
        match &mut queue.stream {
            Some(stream) if next.is_some() => {
                (scheduled.last, scheduled.due) = (now, next);
                stream.roles.schedule(sequence, scheduled);
            }
            // The stream has refused what the schedule publishes.
            Some(stream) if stream.index.contains(sequence) => {
                queue.remove_message(sequence, effects);
            }
            _ => {}
        }
    }
}

/// Publishes a message to a locked stream, unless the stream refuses it.
fn publish_form<W: World>(
    world: &W,
    queue: &mut Queue,
    subject: &[u8],
    publication: Publication<'_>,
    headers: &StreamPublish<'_>,
    now: Time,
    effects: &mut Effects,
) {
    let asks = StreamAsks::from(headers);
    let publication = publication.asking(&asks);
    // A marker or a scheduled message that does not fit has nobody who could be told.
    if queue.stream_admits(&publication, subject).is_ok() {
        append_alone(world, queue, &publication, subject, now, effects);
    }
}

/// Records a message for a locked stream alone and appends it, with its id; returns its record.
pub(super) fn append_alone<W: World>(
    world: &W,
    queue: &mut Queue,
    publication: &Publication<'_>,
    subject: &[u8],
    now: Time,
    effects: &mut Effects,
) -> Lsn {
    let own = Address::new(TOPIC_EXCHANGE, b"");
    let address = AddressView::passing(&own.exchange, subject);
    let lsn = record_in_stream(world, queue, publication, (&address, None), now);
    let arrival = Arrival { address: &address, deaths: None, lsn, now };
    append_recorded(queue, publication, &arrival, effects);
    lsn
}

/// Puts a message of an archive into a locked stream with its own number and time; `false` if the stream is past that
/// number.
pub(crate) fn append_archived<W: World>(
    world: &W,
    queue: &mut Queue,
    message: &ArchivedMessage,
    now: Time,
    effects: &mut Effects,
) -> bool {
    if !queue.skip_to(message.sequence) {
        return false;
    }
    let publication = Publication::with_shared_body(&message.properties, &message.text, &message.body);
    let headers = StreamPublish { schedule: message.schedule.clone(), ..StreamPublish::default() };
    let asks = StreamAsks::from(&headers);
    let subject = message.subject.as_bytes();
    append_alone(world, queue, &publication.asking(&asks), subject, message.time, effects);
    if let Some(stream) = &mut queue.stream {
        stream.roles.skip_missed(message.sequence, now);
    }
    true
}

/// Appends a recorded message to a locked stream, with its id.
pub(super) fn append_recorded(
    queue: &mut Queue,
    publication: &Publication<'_>,
    arrival: &Arrival<'_>,
    effects: &mut Effects,
) {
    queue.append(publication, arrival, effects);
    let sequence = queue.last_sequence();
    let id = publication.view().property(Property::MessageId);
    if let Some((dedup, id)) = queue.dedup().zip(id) {
        dedup.note_at(id, arrival.now, arrival.lsn, sequence);
    }
}

/// Records a message for a locked stream that other queues of its route have in another record: a dead letter, or one
/// that the stream publishes itself.
#[cold]
pub(crate) fn record_in_stream<W: World>(
    world: &W,
    queue: &mut Queue,
    publication: &Publication<'_>,
    (address, deaths): (&AddressView<'_>, Option<&Arc<Deaths>>),
    now: Time,
) -> Lsn {
    let record = record_of(queue, publication, (address, deaths.map(|deaths| &**deaths)), now);
    record.map_or(Lsn::NONE, |record| record_one(world, record))
}

/// Gives a message its number in a locked stream. Returns its record, if the stream is stored on disk.
pub(crate) fn record_of(
    queue: &mut Queue,
    publication: &Publication<'_>,
    (address, deaths): (&AddressView<'_>, Option<&Deaths>),
    now: Time,
) -> Option<NewRecord> {
    let sequence = queue.reserve_sequence(publication, address.subject());
    let (durability, sequence) = queue.durability().zip(sequence)?;
    if durability.level == Level::Memory {
        return None;
    }
    let id = durability.id;
    let removals = queue.reserved_removals().map(|removals| (id, removals));
    let in_streams = InStreams {
        sequences: &[(id, sequence)],
        removals: removals.as_slice(),
        schedule: publication.asks().and_then(|asked| asked.schedule.as_deref()),
    };
    let payload = encode_for_streams(&publication.view(), address, deaths, (&[id], in_streams), now);
    Some(NewRecord::new(RecordKind::Message, payload))
}
