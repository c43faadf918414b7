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
use super::ranges::{number, push_number};
use crate::id::DurableQueueId;
use crate::message::{Address, AddressView, Death, DeathReason, Deaths, MessageView, OriginId, Properties};
use crate::name::Name;
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
/// The flags of the extension that this release knows. A record with any other is refused: its fields would be taken
/// for text.
const EXTENSION_KNOWN: u64 = ANNOTATIONS | SEQUENCES;

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
    FIELDS_BYTES + address + 8 * queue_count + spans + deaths + view.text.len() + view.body.len()
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
    encode_numbered(view, address, deaths, (queues, &[]), time)
}

/// Encodes a message as [`encode_message`] does, with its sequence numbers in those of the queues that are streams.
#[must_use]
pub fn encode_numbered(
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    (queues, sequences): (&[DurableQueueId], &[(DurableQueueId, u64)]),
    time: Time,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(message_bytes_max(view, address, deaths, queues.len()));
    push_message(&mut out, view, address, deaths, (queues, sequences), time);
    out
}

/// Appends a message record to `out`; see [`encode_message`].
pub(super) fn push_message(
    out: &mut Vec<u8>,
    view: &MessageView<'_>,
    address: &AddressView<'_>,
    deaths: Option<&Deaths>,
    (queues, sequences): (&[DurableQueueId], &[(DurableQueueId, u64)]),
    time: Time,
) {
    let properties = view.properties;
    let annotations = deaths.and_then(Deaths::annotations);
    let flag = |is_there, flag| if is_there { flag } else { 0 };
    let flags = flag(properties.is_persistent, PERSISTENT)
        | flag(properties.replies_to_inbox, REPLIES_TO_INBOX)
        | flag(properties.priority.is_some(), PRIORITY)
        | flag(properties.expiration_ms.is_some(), EXPIRATION)
        | flag(properties.timestamp.is_some(), TIMESTAMP)
        | flag(deaths.is_some_and(|deaths| !deaths.is_empty()), DEATHS)
        | flag(annotations.is_some() || !sequences.is_empty(), EXTENDED)
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
    if flags & EXTENDED != 0 {
        let numbered = if sequences.is_empty() { 0 } else { SEQUENCES };
        push_number(out, annotations.map_or(0, |_| ANNOTATIONS) | numbered);
    }
    if let Some(annotations) = annotations {
        let len = u32::try_from(annotations.len()).expect("annotations end at 64 KiB");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(annotations);
    }
    if !sequences.is_empty() {
        push_number(out, sequences.len() as u64);
        for (queue, sequence) in sequences {
            push_number(out, queues.iter().position(|own| own == queue).unwrap_or(usize::MAX) as u64);
            push_number(out, *sequence);
        }
    }
    let text_len = u32::try_from(view.text.len()).expect("header blocks end at 64 KiB");
    out.extend_from_slice(&text_len.to_le_bytes());
    out.extend_from_slice(view.text);
    out.extend_from_slice(view.body);
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
        let (annotations, sequences) =
            if has(EXTENDED) { extension(&mut fields, &queues)? } else { (None, Vec::new()) };
        let has_history = deaths.is_some() || annotations.is_some();
        let deaths = deaths.unwrap_or_default().with_annotations(annotations);
        let deaths = has_history.then(|| Arc::new(deaths));
        let text = fields.long()?;
        Ok(MessageRecord { properties, text, body: fields.rest(), address, queues, sequences, deaths, time })
    }

    /// The message as a reader sees it.
    #[must_use]
    pub fn view(&self) -> MessageView<'_> {
        MessageView { properties: &self.properties, text: self.text, body: self.body }
    }
}

/// The fields of an extension: annotations and sequence numbers.
type Extension = (Option<Box<[u8]>>, Vec<(DurableQueueId, u64)>);

fn extension(fields: &mut Fields<'_>, queues: &[DurableQueueId]) -> Result<Extension, RecordError> {
    const NO_QUEUE: RecordError = RecordError::Unknown("sequence number");
    let flags = number(fields)?;
    if flags & !EXTENSION_KNOWN != 0 {
        return Err(RecordError::Flags {
            record: "message",
            version: VERSION,
            flags: flags & !EXTENSION_KNOWN,
        });
    }
    let annotations = if flags & ANNOTATIONS != 0 { Some(Box::from(fields.long()?)) } else { None };
    let mut sequences = Vec::new();
    if flags & SEQUENCES != 0 {
        for _ in 0..number(fields)? {
            let at = usize::try_from(number(fields)?).map_err(|_| NO_QUEUE)?;
            sequences.push((*queues.get(at).ok_or(NO_QUEUE)?, number(fields)?));
        }
    }
    Ok((annotations, sequences))
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
            (&[4], refused(4)),
            (&[5], refused(4)),
            (&[0x80, 1], refused(0x80)),
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
        let told = refused(0x104).map(|error| error.to_string()).unwrap_or_default();
        let expected = "the message record of version `2` has the flags `0x104`, which this release does not know; \
            open it with the release that wrote it";
        assert_eq!(told, expected);
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
