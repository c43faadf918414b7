//! Messages that a stream publishes itself: markers of deleted subjects, and what its schedules publish.

use std::sync::Arc;

use crate::confirm::{Level, Lsn};
use crate::entries::Entry;
use crate::message::{
    Address, AddressView, Deaths, MessageRole, Property, Publication, Rollup, StreamAsks, StreamPublish,
    TOPIC_EXCHANGE,
};
use crate::queue::{Arrival, Effects, Queue};
use crate::record::{NewRecord, RecordKind, encode_numbered};
use crate::stream::{ArchivedMessage, Scheduled, Stream, StreamForm};
use crate::time::Time;
use crate::world::World;

/// Publishes what a locked stream has to publish now.
pub(crate) fn publish_own<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    publish_markers(world, queue, now, effects);
    publish_scheduled(world, queue, now, effects);
}

fn publish_markers<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    let Some(stream) = queue.stream.as_mut().filter(|stream| !stream.unmarked.is_empty()) else { return };
    let unmarked = std::mem::take(&mut stream.unmarked);
    let Some(ttl) = stream.settings.marker_ttl else { return };
    let form = world.stream_forms().marker(ttl);
    for subject in unmarked {
        // A newer message of the subject needs no marker.
        if queue.stream.as_ref().is_some_and(|stream| stream.index.count_of(subject.as_bytes()) > 0) {
            continue;
        }
        let role = MessageRole { is_marker: true, ..MessageRole::default() };
        let headers = StreamPublish { rollup: Some(Rollup::Subject), role, ..StreamPublish::default() };
        publish_form(world, queue, subject.as_bytes(), &form, &headers, now, effects);
    }
}

/// Publishes what the schedules of a stream publish now.
fn publish_scheduled<W: World>(world: &W, queue: &mut Queue, now: Time, effects: &mut Effects) {
    loop {
        let Some(stream) = &mut queue.stream else { return };
        stream.is_schedule_on_disk = false;
        let Some((_, sequence)) = stream.roles.first_due().filter(|(due, _)| *due <= now) else { return };
        let schedule = queue.read_message(sequence);
        let mut is_on_disk = schedule.is_none();
        let mut last_of = |subject: &[u8]| {
            let last = queue.stream.as_ref()?.index.last_of(subject)?;
            let found = queue.read_message(last);
            is_on_disk |= found.is_none();
            found
        };
        let scheduled = schedule.as_ref().and_then(|schedule: &Entry| {
            world.stream_forms().scheduled(schedule, &mut last_of, now, world.header_readers())
        });
        if is_on_disk {
            if let Some(stream) = &mut queue.stream {
                stream.is_schedule_on_disk = true;
            }
            return;
        }
        let mut role = queue.stream.as_ref().map(|stream| stream.roles.of(sequence)).unwrap_or_default();
        role.next_due = scheduled.as_ref().and_then(|scheduled| scheduled.next);
        if let Some(Scheduled { target, form, is_rollup, .. }) = &scheduled {
            let headers =
                StreamPublish { rollup: is_rollup.then_some(Rollup::Subject), ..StreamPublish::default() };
            publish_form(world, queue, target.as_bytes(), form, &headers, now, effects);
        }
        if role.next_due.is_none() {
            queue.delete_message(sequence, effects);
        } else if let Some(stream) = &mut queue.stream {
            stream.roles.set(sequence, role);
        }
    }
}

/// Publishes a message to a locked stream, unless the stream refuses it.
fn publish_form<W: World>(
    world: &W,
    queue: &mut Queue,
    subject: &[u8],
    form: &StreamForm,
    headers: &StreamPublish<'_>,
    now: Time,
    effects: &mut Effects,
) {
    let body = form.body.as_deref().unwrap_or_default();
    let asks = StreamAsks::from(headers);
    let publication = Publication::new(&form.properties, &form.text, body).asking(&asks);
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
    let forms = world.stream_forms();
    let publication = Publication::with_shared_body(&message.properties, &message.text, &message.body);
    let has_roles = queue.stream().is_some_and(Stream::has_roles);
    let role = match has_roles {
        true => forms.role(&publication.view(), message.time, now),
        false => MessageRole::default(),
    };
    let headers = StreamPublish { role, ..StreamPublish::default() };
    let asks = StreamAsks::from(&headers);
    let subject = message.subject.as_bytes();
    append_alone(world, queue, &publication.asking(&asks), subject, message.time, effects);
    if let Some(stream) = queue.stream.as_mut().filter(|stream| stream.settings.is_counter)
        && let Some(value) = forms.count(&message.body)
    {
        stream.note_count(subject, message.sequence, value);
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
    let level = queue.level();
    let Some((id, sequence)) = queue.reserve_sequence().filter(|_| level > Level::Memory) else {
        return Lsn::NONE;
    };
    let deaths = deaths.map(|deaths| &**deaths);
    let payload = encode_numbered(&publication.view(), address, deaths, (&[id], &[(id, sequence)]), now);
    world.append(vec![NewRecord::new(RecordKind::Message, payload)]).first
}
