//! A message and its queues in one record: after a crash it is in all of these queues, or in none.
//!
//! `version u8, origin u8, flags u8`, of the optional fields `priority u8, expiration_ms u32, timestamp u64, delay_ms
//! u32` those that the flags name, `time u64, exchange short, subject short`, the queues as `count u32` and that many
//! times `u64`, the spans of its properties as `count u8` and that many times `number u8, start u16, len u16`, its
//! deaths, its extension, `text` with its length in 32 bits, and the body to the end. The highest flag announces the
//! extension, in which later fields find room: `flags` as a number (`ranges.rs`), then the fields that they name.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::fields::{Fields, RecordError, push_short};
use super::optional::push_long;
use super::ranges::{number, push_number, push_ranges, ranges, ranges_of};
use super::schedule::{push_schedule, schedule};
use crate::id::DurableQueueId;
use crate::message::{
    Address, AddressView, Death, DeathReason, Deaths, MessageView, OriginId, Properties, Rollup, Schedule,
};
use crate::name::Name;
use crate::stream::Removals;
use crate::time::Time;

const VERSION: u8 = 2;

const PERSISTENT: u8 = 1;
const REPLIES_TO_INBOX: u8 = 1 << 1;
const PRIORITY: u8 = 1 << 2;
const EXPIRATION: u8 = 1 << 3;
const TIMESTAMP: u8 = 1 << 4;
const DEATHS: u8 = 1 << 5;
const DELAY: u8 = 1 << 6;
/// An extension stands before the text. The flags of the extension have room for 64 fields.
const EXTENDED: u8 = 1 << 7;

/// Flag of the extension: annotations, with their length in 32 bits.
const ANNOTATIONS: u64 = 1;
/// Flag of the extension: sequence numbers in streams, as their number and for each the queue's index and the sequence
/// number.
const SEQUENCES: u64 = 2;
/// Flags of the extension without a field: properties that only streams read.
const NEVER_EXPIRES: u64 = 1 << 2;
const MARKER: u64 = 1 << 3;
const COUNT: u64 = 1 << 4;
/// Flag of the extension: the schedule on which streams publish the message again (`schedule.rs`).
const SCHEDULE: u64 = 1 << 5;
/// Flags of the extension without a field: the message replaces the earlier ones of its subject, or all.
const REPLACES_SUBJECT: u64 = 1 << 6;
const REPLACES_ALL: u64 = 1 << 7;
/// Flag of the extension: a subject whose earlier messages go, as `short`.
const ENDED_SCHEDULE: u64 = 1 << 8;
/// Flag of the extension: messages that give way, as the number of streams and for each the queue's index and ranges of
/// sequence numbers (`ranges.rs`).
const DROPPED: u64 = 1 << 9;
/// The flags of the extension that this release knows. A record with any other is refused: its fields would be taken
/// for text.
const EXTENSION_KNOWN: u64 = ANNOTATIONS
    | SEQUENCES
    | NEVER_EXPIRES
    | MARKER
    | COUNT
    | SCHEDULE
    | REPLACES_SUBJECT
    | REPLACES_ALL
    | ENDED_SCHEDULE
    | DROPPED;

/// The fields that a record has only if its message goes to streams. All are empty by default.
#[derive(Debug, Default, Clone, Copy)]
pub struct InStreams<'a> {
    /// The sequence number of the message in each stream.
    pub sequences: &'a [(DurableQueueId, u64)],
    /// The messages that leave with it, by stream; what they replace is the same for all.
    pub removals: &'a [(DurableQueueId, &'a Removals)],
    /// The schedule on which the streams publish it again.
    pub schedule: Option<&'a Schedule>,
}

/// A message as decoded from its record.
#[derive(Debug, Clone)]
pub struct MessageRecord<'a> {
    /// The properties that the broker reads from its headers.
    pub properties: Properties,
    /// The header block, in the origin's own form.
    pub text: &'a [u8],
    /// The body, borrowed from the payload of the record.
    pub body: &'a [u8],
    /// The address that the message was published to.
    pub address: Address,
    /// The queues that the message went to.
    pub queues: Vec<DurableQueueId>,
    /// The sequence number of the message in each of them that is a stream.
    pub sequences: Vec<(DurableQueueId, u64)>,
    /// The messages that leave these streams with it, as far as that differs from stream to stream.
    pub dropped: Vec<(DurableQueueId, Vec<(u64, u64)>)>,
    /// The earlier messages that it replaces in each of these streams.
    pub rollup: Option<Rollup>,
    /// The subject of the schedule that it ends, whose earlier messages go.
    pub ended_schedule: Option<&'a [u8]>,
    /// The schedule on which these streams publish it again.
    pub schedule: Option<Arc<Schedule>>,
    /// The history, if the message comes from another queue.
    pub deaths: Option<Arc<Deaths>>,
    /// When the message arrived.
    pub time: Time,
}

/// Bytes of the mandatory fields and of all optional ones.
const FIELDS_BYTES: usize = (3 + 8 + 2 + 2 + 4 + 1 + 4) + (1 + 4 + 8 + 4);

/// The most bytes that [`encode_message`] writes for a message with this many queues.
#[must_use]
pub fn message_bytes_max(
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    queue_count: usize,
) -> usize {
    let address = address.exchange().len() + address.subject().len();
    let spans = 5 * view.properties.spans().count();
    let deaths = deaths.map_or(0, deaths_bytes);
    let marks = usize::from(extension_flags(view.properties, None, &InStreams::default()) != 0);
    FIELDS_BYTES + marks + address + 8 * queue_count + spans + deaths + view.text.len() + view.body.len()
}

/// Encodes a message for these queues. Before handing it to the journal, the caller has to check its
/// [size](message_bytes_max).
#[must_use]
pub fn encode_message(
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    queues: &[DurableQueueId],
    time: Time,
) -> Vec<u8> {
    encode_for_streams(view, address, deaths, (queues, InStreams::default()), time)
}

/// Encodes a message as [`encode_message`] does, for queues of which some are streams.
#[must_use]
pub fn encode_for_streams(
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    (queues, in_streams): (&[DurableQueueId], InStreams<'_>),
    time: Time,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(message_bytes_max(view, address, deaths, queues.len()));
    push_message(&mut out, view, address, deaths, (queues, in_streams), time);
    out
}

/// Appends a message record to `out`; see [`encode_message`].
pub(super) fn push_message(
    out: &mut Vec<u8>,
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    (queues, in_streams): (&[DurableQueueId], InStreams<'_>),
    time: Time,
) {
    let properties = view.properties;
    let annotations = deaths.and_then(Deaths::annotations);
    let extension = extension_flags(properties, annotations, &in_streams);
    let flag = |is_there, flag| if is_there { flag } else { 0 };
    let flags = flag(properties.is_persistent, PERSISTENT)
        | flag(properties.replies_to_inbox, REPLIES_TO_INBOX)
        | flag(properties.priority.is_some(), PRIORITY)
        | flag(properties.expiration_ms.is_some(), EXPIRATION)
        | flag(properties.timestamp.is_some(), TIMESTAMP)
        | flag(deaths.is_some_and(|deaths| !deaths.is_empty()), DEATHS)
        | flag(extension != 0, EXTENDED)
        | flag(properties.delay_ms.is_some(), DELAY);
    out.extend_from_slice(&[VERSION, properties.origin.0, flags]);
    properties.priority.into_iter().for_each(|priority| out.push(priority));
    properties.expiration_ms.into_iter().for_each(|ms| out.extend_from_slice(&ms.to_le_bytes()));
    properties.timestamp.into_iter().for_each(|seconds| out.extend_from_slice(&seconds.to_le_bytes()));
    properties.delay_ms.into_iter().for_each(|ms| out.extend_from_slice(&ms.get().to_le_bytes()));
    out.extend_from_slice(&time.0.to_le_bytes());
    push_short(out, address.exchange());
    push_short(out, address.subject());
    let count = u32::try_from(queues.len()).expect("a vhost has fewer queues");
    out.extend_from_slice(&count.to_le_bytes());
    queues.iter().for_each(|queue| out.extend_from_slice(&queue.0.to_le_bytes()));
    out.push(u8::try_from(properties.spans().count()).expect("there are few properties"));
    for (number, start, len) in properties.spans() {
        out.push(number);
        out.extend_from_slice(&start.to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
    }
    deaths.filter(|deaths| !deaths.is_empty()).into_iter().for_each(|deaths| push_deaths(out, deaths));
    if extension != 0 {
        push_extension(out, extension, annotations, queues, &in_streams);
    }
    let text_len = u32::try_from(view.text.len()).expect("header blocks end at 64 KiB");
    out.extend_from_slice(&text_len.to_le_bytes());
    out.extend_from_slice(view.text);
    out.extend_from_slice(view.body);
}

#[inline]
fn extension_flags(properties: &Properties, annotations: Option<&[u8]>, in_streams: &InStreams<'_>) -> u64 {
    let flag = |is_there, flag| if is_there { flag } else { 0 };
    let of_properties = flag(properties.never_expires, NEVER_EXPIRES)
        | flag(properties.is_marker, MARKER)
        | flag(properties.is_count, COUNT);
    let InStreams { sequences, removals, schedule } = in_streams;
    let first = removals.first().map(|(_, removals)| *removals);
    let rollup = match first.and_then(|removals| removals.rollup) {
        None => 0,
        Some(Rollup::Subject) => REPLACES_SUBJECT,
        Some(Rollup::All) => REPLACES_ALL,
    };
    of_properties
        | rollup
        | flag(annotations.is_some(), ANNOTATIONS)
        | flag(!sequences.is_empty(), SEQUENCES)
        | flag(schedule.is_some(), SCHEDULE)
        | flag(first.is_some_and(|removals| removals.ended_schedule.is_some()), ENDED_SCHEDULE)
        | flag(removals.iter().any(|(_, removals)| !removals.dropped.is_empty()), DROPPED)
}

/// Writes the extension with these flags.
fn push_extension(
    out: &mut Vec<u8>,
    flags: u64,
    annotations: Option<&[u8]>,
    queues: &[DurableQueueId],
    in_streams: &InStreams<'_>,
) {
    push_number(out, flags);
    annotations.into_iter().for_each(|annotations| push_long(out, annotations));
    let InStreams { sequences, removals, schedule } = in_streams;
    let index = |queue| queues.iter().position(|own| own == queue).unwrap_or(usize::MAX) as u64;
    if !sequences.is_empty() {
        push_number(out, sequences.len() as u64);
        for (queue, sequence) in *sequences {
            push_number(out, index(queue));
            push_number(out, *sequence);
        }
    }
    schedule.iter().for_each(|schedule| push_schedule(out, schedule));
    let ended = removals.first().and_then(|(_, removals)| removals.ended_schedule.as_deref());
    ended.into_iter().for_each(|ended| push_short(out, ended));
    if flags & DROPPED != 0 {
        push_number(out, removals.len() as u64);
        for (queue, removals) in *removals {
            let ranges = ranges_of(removals.dropped.clone());
            push_number(out, index(queue));
            push_ranges(out, ranges.len(), ranges.into_iter());
        }
    }
}

impl<'a> MessageRecord<'a> {
    /// Decodes a record's payload.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &'a [u8]) -> Result<MessageRecord<'a>, RecordError> {
        let mut fields = Fields::of(payload, VERSION)?;
        let mut properties = Properties::new(OriginId(fields.u8()?));
        let flags = fields.u8()?;
        let has = |flag| flags & flag != 0;
        properties.is_persistent = has(PERSISTENT);
        properties.replies_to_inbox = has(REPLIES_TO_INBOX);
        properties.priority = if has(PRIORITY) { Some(fields.u8()?) } else { None };
        properties.expiration_ms = if has(EXPIRATION) { Some(fields.u32()?) } else { None };
        properties.timestamp = if has(TIMESTAMP) { Some(fields.u64()?) } else { None };
        properties.delay_ms = if has(DELAY) { NonZeroU32::new(fields.u32()?) } else { None };
        let time = Time(fields.u64()?);
        let address = Address::new(fields.short()?, fields.short()?);
        let mut queues = Vec::new();
        for _ in 0..fields.u32()? {
            queues.push(DurableQueueId(fields.u64()?));
        }
        for _ in 0..fields.u8()? {
            let (number, start, len) = (fields.u8()?, fields.u16()?, fields.u16()?);
            if !properties.set_span(number, start, len) {
                return Err(RecordError::Unknown("property"));
            }
        }
        let deaths = if has(DEATHS) { Some(deaths(&mut fields)?) } else { None };
        let extension = if has(EXTENDED) { extension(&mut fields, &queues)? } else { Extension::default() };
        let Extension { flags, annotations, sequences, dropped, ended_schedule, schedule } = extension;
        let has = |flag| flags & flag != 0;
        properties.never_expires = has(NEVER_EXPIRES);
        properties.is_marker = has(MARKER);
        properties.is_count = has(COUNT);
        let by_subject = has(REPLACES_SUBJECT).then_some(Rollup::Subject);
        let rollup = if has(REPLACES_ALL) { Some(Rollup::All) } else { by_subject };
        let has_history = deaths.is_some() || annotations.is_some();
        let deaths = deaths.unwrap_or_default().with_annotations(annotations);
        let deaths = has_history.then(|| Arc::new(deaths));
        let text = fields.long()?;
        Ok(MessageRecord {
            properties,
            text,
            body: fields.rest(),
            address,
            queues,
            sequences,
            dropped,
            rollup,
            ended_schedule,
            schedule,
            deaths,
            time,
        })
    }

    /// The message as a reader sees it.
    #[must_use]
    pub fn view(&self) -> MessageView<'_> {
        MessageView { properties: &self.properties, text: self.text, body: self.body }
    }
}

/// The fields of an extension.
#[derive(Default)]
struct Extension<'a> {
    flags: u64,
    annotations: Option<Box<[u8]>>,
    sequences: Vec<(DurableQueueId, u64)>,
    dropped: Vec<(DurableQueueId, Vec<(u64, u64)>)>,
    ended_schedule: Option<&'a [u8]>,
    schedule: Option<Arc<Schedule>>,
}

fn extension<'a>(fields: &mut Fields<'a>, queues: &[DurableQueueId]) -> Result<Extension<'a>, RecordError> {
    let flags = number(fields)?;
    if flags & !EXTENSION_KNOWN != 0 {
        return Err(RecordError::Flags {
            record: "message",
            version: VERSION,
            flags: flags & !EXTENSION_KNOWN,
        });
    }
    let has = |flag| flags & flag != 0;
    let annotations = if has(ANNOTATIONS) { Some(Box::from(fields.long()?)) } else { None };
    let mut sequences = Vec::new();
    if has(SEQUENCES) {
        for _ in 0..number(fields)? {
            sequences.push((stream(fields, queues)?, number(fields)?));
        }
    }
    let schedule = if has(SCHEDULE) { Some(Arc::new(schedule(fields)?)) } else { None };
    let ended_schedule = if has(ENDED_SCHEDULE) { Some(fields.short()?) } else { None };
    let mut dropped = Vec::new();
    if has(DROPPED) {
        for _ in 0..number(fields)? {
            dropped.push((stream(fields, queues)?, ranges(fields)?));
        }
    }
    Ok(Extension { flags, annotations, sequences, dropped, ended_schedule, schedule })
}

/// Reads the index of a queue that is a stream.
fn stream(fields: &mut Fields<'_>, queues: &[DurableQueueId]) -> Result<DurableQueueId, RecordError> {
    let at = usize::try_from(number(fields)?).ok();
    at.and_then(|at| queues.get(at)).copied().ok_or(RecordError::Unknown("stream"))
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    let count = u16::try_from(count).expect("a history ends at 64 deaths");
    out.extend_from_slice(&count.to_le_bytes());
}

/// `count u16, first u16`, then each death: `queue short, reason u8, count u64, time u64, exchange short, subject
/// short`.
fn push_deaths(out: &mut Vec<u8>, deaths: &Deaths) {
    push_count(out, deaths.len());
    push_count(out, deaths.first_index());
    for Death { queue, reason, count, address, time } in deaths.iter() {
        push_short(out, queue.as_bytes());
        let number = DeathReason::ALL.iter().position(|other| other == reason).unwrap_or_default();
        out.push(u8::try_from(number).expect("there are four reasons"));
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&time.0.to_le_bytes());
        push_short(out, address.exchange.as_bytes());
        push_short(out, address.subject.as_bytes());
    }
}

fn deaths_bytes(deaths: &Deaths) -> usize {
    let of_death = |death: &Death| {
        let address = death.address.exchange.as_bytes().len() + death.address.subject.as_bytes().len();
        (2 + 1 + 8 + 8 + 2 + 2) + death.queue.as_bytes().len() + address
    };
    let annotations = deaths.annotations().map_or(0, |annotations| 1 + 4 + annotations.len());
    4 + deaths.iter().map(of_death).sum::<usize>() + annotations
}

fn deaths(fields: &mut Fields<'_>) -> Result<Deaths, RecordError> {
    let (count, first) = (fields.u16()?, fields.u16()?);
    let mut list = Vec::new();
    for _ in 0..count {
        let queue = Name::new(fields.short()?);
        let reason = DeathReason::ALL.get(usize::from(fields.u8()?)).copied();
        let reason = reason.ok_or(RecordError::Unknown("reason of a death"))?;
        let (count, time) = (fields.u64()?, Time(fields.u64()?));
        let address = Arc::new(Address::new(fields.short()?, fields.short()?));
        list.push(Death { queue, reason, count, address, time });
    }
    Ok(Deaths::told(list, usize::from(first)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::schedule::tests::schedules;
    use super::*;
    use crate::message::{Property, Span};

    fn sample() -> (Properties, &'static [u8], Arc<Address>, Deaths) {
        let mut properties = Properties::new(OriginId(4));
        properties.is_persistent = true;
        properties.priority = Some(4);
        properties.expiration_ms = Some(60_000);
        properties.timestamp = Some(1_700_000_000);
        properties.delay_ms = NonZeroU32::new(90_000);
        properties.set(Property::CorrelationId, Span::new(15, 2).expect("it is short"));
        let address = Arc::new(Address::new(b"amq.topic", b"a.b"));
        let deaths = Deaths::default().and(&Name::from("q"), DeathReason::Overflow, &address, Time(5)).and(
            &Name::from("r"),
            DeathReason::Rejected,
            &address,
            Time(6),
        );
        let deaths = deaths.with_annotations(Some(Box::from(*b"noted")));
        (properties, b"correlation-id:42\n", address, deaths)
    }

    fn encoded() -> Vec<u8> {
        let (properties, text, address, deaths) = sample();
        let view = MessageView { properties: &properties, text, body: b"body" };
        let queues = [DurableQueueId(3), DurableQueueId(u64::MAX)];
        encode_message(&view, &AddressView::new(&address), Some(&deaths), &queues, Time(77))
    }

    #[test]
    fn decode_after_encode_is_identity() {
        let (properties, text, address, deaths) = sample();
        let bytes = encoded();
        let record = MessageRecord::decode(&bytes).expect("it was encoded");
        assert_eq!((record.properties, record.text, record.body), (properties, text, &b"body"[..]));
        assert_eq!((&record.address, record.time), (&*address, Time(77)));
        assert_eq!(record.queues, [DurableQueueId(3), DurableQueueId(u64::MAX)]);
        assert_eq!(record.deaths.as_deref(), Some(&deaths));
        assert_eq!(record.view().property(Property::CorrelationId), Some(&b"42"[..]));
    }

    #[test]
    fn what_consumers_noted_makes_no_dead_letter() {
        let (properties, text, address, _) = sample();
        let noted = Deaths::default().with_annotations(Some(Box::from(*b"noted")));
        let (address, view) =
            (AddressView::new(&address), MessageView { properties: &properties, text, body: b"" });
        let bytes = encode_message(&view, &address, Some(&noted), &[], Time(77));
        assert!(bytes.len() <= message_bytes_max(&view, &address, Some(&noted), 0));
        let record = MessageRecord::decode(&bytes).expect("it was encoded");
        assert_eq!(record.deaths.as_deref(), Some(&noted));
        assert!(!Deaths::any(record.deaths.as_ref()));
    }

    #[test]
    fn a_message_takes_no_more_than_is_said_of_it() {
        let (mut properties, text, address, deaths) = sample();
        let address = AddressView::new(&address);
        let queues: Vec<DurableQueueId> = (1..=500).map(DurableQueueId).collect();
        for deaths in [Some(&deaths), None] {
            for queues in [&queues[..0], &queues[..1], &queues] {
                let view = MessageView { properties: &properties, text, body: b"body" };
                let bytes = encode_message(&view, &address, deaths, queues, Time(77)).len();
                assert_eq!(bytes, message_bytes_max(&view, &address, deaths, queues.len()));
            }
        }
        (properties.priority, properties.expiration_ms, properties.timestamp, properties.delay_ms) =
            (None, None, None, None);
        let view = MessageView { properties: &properties, text, body: b"body" };
        let bytes = encode_message(&view, &address, None, &queues, Time(77)).len();
        assert_eq!(bytes + 1 + 4 + 8 + 4, message_bytes_max(&view, &address, None, queues.len()));
    }

    #[test]
    fn what_is_absent_takes_no_room() {
        let (properties, address) = (Properties::new(OriginId::BROKER), Arc::new(Address::new(b"", b"q")));
        let view = MessageView { properties: &properties, text: b"", body: b"" };
        let bytes = encode_message(&view, &AddressView::new(&address), None, &[DurableQueueId(1)], Time(0));
        assert_eq!(bytes.len(), 3 + 8 + 2 + 3 + 4 + 8 + 1 + 4);
        let record = MessageRecord::decode(&bytes).expect("it was encoded");
        assert_eq!((record.properties, record.deaths), (properties, None));
    }

    #[test]
    fn an_extension_with_an_unknown_flag_is_refused_and_one_without_a_field_is_none() {
        let (properties, text, address, _) = sample();
        let (address, view) =
            (AddressView::new(&address), MessageView { properties: &properties, text, body: b"body" });
        let noted = Deaths::default().with_annotations(Some(Box::from(*b"noted")));
        let plain = encode_message(&view, &address, None, &[], Time(77));
        let extended = encode_message(&view, &address, Some(&noted), &[], Time(77));
        assert_eq!(extended.len(), plain.len() + 1 + 4 + 5, "the extension is a byte of flags and the field");
        let at = plain.len() - (4 + text.len() + b"body".len());
        let with = |flags: &[u8]| {
            let mut bytes = [&plain[..at], flags, &plain[at..]].concat();
            bytes[2] |= EXTENDED;
            bytes
        };
        let refused = |flags| Some(RecordError::Flags { record: "message", version: 2, flags });
        for (flags, expected) in [
            (&[0][..], None),
            (&[0x80, 0x10], refused(0x800)),
            (&[0x81, 0x10], refused(0x800)),
            (&[0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], refused(1 << 63)),
            (&[0xff; 11], Some(RecordError::Unknown("number"))),
        ] {
            let bytes = with(flags);
            let read = MessageRecord::decode(&bytes);
            assert_eq!(read.as_ref().err().copied(), expected, "{flags:?}");
            assert!(
                read.is_err() || read.is_ok_and(|record| record.body == b"body" && record.deaths.is_none())
            );
        }
        let told = refused(0x1800).map(|error| error.to_string()).unwrap_or_default();
        let expected = "the message record of version `2` has the flags `0x1800`, which this release does not know; \
            open it with the release that wrote it";
        assert_eq!(told, expected);
    }

    #[test]
    fn what_a_message_does_in_streams_is_read_as_written() {
        let (mut properties, text, address, _) = sample();
        let address = AddressView::new(&address);
        let queues = [DurableQueueId(3), DurableQueueId(4), DurableQueueId(5)];
        let sequences = [(queues[1], 300), (queues[2], 1)];
        let dropping = |rollup, ended: Option<&str>, dropped: &[u64]| Removals {
            rollup,
            ended_schedule: ended.map(|subject| Box::from(subject.as_bytes())),
            dropped: dropped.to_vec(),
        };
        let one = dropping(Some(Rollup::Subject), Some("jobs"), &[7, 2, 1, 9]);
        let other = dropping(Some(Rollup::Subject), Some("jobs"), &[]);
        let all = dropping(Some(Rollup::All), None, &[]);
        let plain = dropping(None, None, &[4]);
        let schedules = schedules();
        for (removals, schedule, marks) in [
            (&[(queues[1], &one), (queues[2], &other)][..], None, (false, false, false)),
            (&[(queues[2], &all)], schedules.first(), (true, false, false)),
            (&[(queues[2], &plain)], schedules.get(1), (false, true, false)),
            (&[], schedules.get(2), (false, false, true)),
        ] {
            (properties.never_expires, properties.is_marker, properties.is_count) = marks;
            let view = MessageView { properties: &properties, text, body: b"body" };
            let in_streams = InStreams { sequences: &sequences, removals, schedule };
            let bytes = encode_for_streams(&view, &address, None, (&queues, in_streams), Time(77));
            let read = MessageRecord::decode(&bytes).expect("it was encoded");
            assert_eq!((read.properties, read.body), (properties, &b"body"[..]));
            assert_eq!((read.queues.as_slice(), read.sequences.as_slice()), (&queues[..], &sequences[..]));
            let first = removals.first().map(|(_, removals)| *removals);
            assert_eq!(read.rollup, first.and_then(|removals| removals.rollup));
            assert_eq!(read.ended_schedule, first.and_then(|removals| removals.ended_schedule.as_deref()));
            assert_eq!(read.schedule.as_deref(), schedule);
            let dropped =
                removals.iter().map(|(queue, removals)| (*queue, ranges_of(removals.dropped.clone())));
            let dropped: Vec<_> = dropped.filter(|(_, ranges)| !ranges.is_empty()).collect();
            let read: Vec<_> = read.dropped.into_iter().filter(|(_, ranges)| !ranges.is_empty()).collect();
            assert_eq!(read, dropped);
        }
    }

    #[test]
    fn the_format_of_an_extension_is_this() {
        let mut properties = Properties::new(OriginId(4));
        properties.is_marker = true;
        let address = Arc::new(Address::new(b"x", b"k"));
        let view = MessageView { properties: &properties, text: b"t", body: b"b" };
        let removals =
            Removals { rollup: Some(Rollup::Subject), dropped: vec![4, 5, 9], ..Removals::default() };
        let stream = DurableQueueId(3);
        let in_streams =
            InStreams { sequences: &[(stream, 300)], removals: &[(stream, &removals)], schedule: None };
        let address = AddressView::new(&address);
        let bytes = encode_for_streams(&view, &address, None, (&[stream], in_streams), Time(7));
        let expected = [
            &[2, 4, EXTENDED, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, b'x', 1, 0, b'k', 1, 0, 0, 0][..],
            &[3, 0, 0, 0, 0, 0, 0, 0, 0],
            // Flags 2, 8, 64 and 512; a number in stream 0; two ranges of stream 0.
            &[0xca, 0x04, 1, 0, 0xac, 0x02, 1, 0, 2, 4, 1, 4, 0],
            &[1, 0, 0, 0, b't', b'b'],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn the_format_without_an_extension_is_this() {
        let (properties, address) = (Properties::new(OriginId(4)), Arc::new(Address::new(b"x", b"k")));
        let view = MessageView { properties: &properties, text: b"t", body: b"b" };
        let bytes = encode_message(&view, &AddressView::new(&address), None, &[DurableQueueId(3)], Time(7));
        let expected = [
            &[2, 4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 0, b'x', 1, 0, b'k', 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0][..],
            &[0, 1, 0, 0, 0, b't', b'b'],
        ];
        assert_eq!(bytes, expected.concat());
    }

    #[test]
    fn no_prefix_up_to_the_body_is_a_message() {
        let bytes = encoded();
        for len in 0..bytes.len() - b"body".len() {
            assert!(MessageRecord::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(at in 0usize..60, byte: u8, cut in 0usize..120) {
            let mut bytes = encoded();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            if let Ok(record) = MessageRecord::decode(&bytes) {
                let _ = record.view().property(Property::CorrelationId);
            }
        }
    }
}
