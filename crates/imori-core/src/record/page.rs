//! An entry of a page: the queue's state of a message, and the message as in its record.
//!
//! `version u8, flags u8, failures u32, sequence u64`, in version 6 `due u64, priority u8`, and the payload
//! of a message record without queues, with the time from which the message waits. Delayed messages have
//! version 6, all others version 5. Earlier versions had a deadline, which a policy could not change.

use std::sync::Arc;

use bytes::Bytes;

use super::fields::{Fields, RecordError};
use super::message::{InStreams, MessageRecord, push_message};
use crate::confirm::Lsn;
use crate::entries::{Entry, delayed_position};
use crate::memory::Gauge;
use crate::message::{AddressView, Deaths, Envelope, Message, Properties, Property};
use crate::paging::{FoundDelayed, PageDraft};
use crate::stream::stored_bytes;
use crate::time::Time;

const VERSION: u8 = 5;
const DELAYED_VERSION: u8 = 6;

const REDELIVERED: u8 = 1;
const REJECTED: u8 = 1 << 1;

/// An entry of a page, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEntry {
    /// The record of the message; [`Lsn::NONE`] if it has none.
    pub lsn: Lsn,
    /// The entry's position, which rises within a priority, or its due time.
    pub position: u64,
    /// The payload; entries of a page share its memory.
    pub payload: Bytes,
}

/// Encodes the entries of a page into one allocation, which is freed as a whole. Thousands of small
/// allocations between waiting entries would fragment memory.
#[must_use]
pub fn encode_page(draft: &PageDraft) -> Vec<PageEntry> {
    let mut page = Vec::with_capacity(draft.written_bytes());
    let mut dues = draft.dues.iter();
    let ends = draft.entries.iter().map(|entry| {
        let due = dues.next().copied();
        push_entry(&mut page, entry, due);
        (due.map_or(entry.position, delayed_position), page.len())
    });
    let ends: Vec<(u64, usize)> = ends.collect();
    let page = Bytes::from(page);
    let mut begin = 0;
    let entries = draft.entries.iter().zip(ends).map(|(entry, (position, end))| {
        let lsn = if draft.is_durable { entry.envelope.lsn } else { Lsn::NONE };
        let payload = page.slice(std::mem::replace(&mut begin, end)..end);
        PageEntry { lsn, position, payload }
    });
    entries.collect()
}

/// Decodes an entry of a page, and charges its message to `gauge`.
///
/// # Errors
/// [`RecordError`].
pub fn decode_page_entry(lsn: Lsn, payload: &[u8], gauge: &Gauge) -> Result<Entry, RecordError> {
    let (head, message) = decode_head(payload)?;
    let record = MessageRecord::decode(message)?;
    let message = Message::store(&record.view(), None, gauge);
    let envelope = Envelope {
        address: Arc::new(record.address),
        sequence: head.sequence,
        lsn,
        since: record.time,
        expiration_ms: Entry::expiration_ms(&record.properties, Deaths::any(record.deaths.as_ref())),
        deaths: record.deaths,
        failures: head.failures,
        is_redelivered: head.is_redelivered,
        is_rejected: head.is_rejected,
        priority: head.delayed.map_or(0, |(_, priority)| priority),
    };
    Ok(Entry::new(message, envelope))
}

/// Decodes a message record as an entry of a queue, and charges its message to `gauge`. The queue's state of
/// the message is not in the record.
///
/// # Errors
/// [`RecordError`].
pub fn decode_journal_entry(lsn: Lsn, payload: &[u8], gauge: &Gauge) -> Result<Entry, RecordError> {
    let record = MessageRecord::decode(payload)?;
    let message = Message::store(&record.view(), None, gauge);
    let envelope = Envelope {
        address: Arc::new(record.address),
        sequence: 0,
        lsn,
        since: record.time,
        expiration_ms: Entry::expiration_ms(&record.properties, Deaths::any(record.deaths.as_ref())),
        deaths: record.deaths,
        failures: 0,
        is_redelivered: false,
        is_rejected: false,
        priority: 0,
    };
    Ok(Entry::new(message, envelope))
}

/// Decodes the part of a delayed entry that its queue keeps in memory while the message is on disk.
///
/// # Errors
/// [`RecordError`].
pub(crate) fn decode_delayed_entry(lsn: Lsn, payload: &[u8]) -> Result<FoundDelayed, RecordError> {
    let (head, message) = decode_head(payload)?;
    let (due, _) = head.delayed.ok_or(RecordError::Unknown("page"))?;
    let record = MessageRecord::decode(message)?;
    let view = record.view();
    let name = view.property(Property::MessageId).map(Box::from);
    Ok(FoundDelayed { lsn, due, sequence: head.sequence, body_bytes: view.body.len() as u64, name })
}

/// The facts of a stream's message in a page, which its index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEntry {
    /// The number of the message in its stream.
    pub(crate) sequence: u64,
    pub(crate) subject: Box<[u8]>,
    /// Bytes as the limits of the stream count them.
    pub(crate) bytes: u32,
    /// When the message came.
    pub(crate) time: Time,
    pub(crate) properties: Properties,
    /// The value of a counter.
    pub(crate) count: Option<Box<[u8]>>,
}

/// Decodes the facts of an entry of a stream.
///
/// # Errors
/// [`RecordError`].
pub(crate) fn decode_stream_entry(payload: &[u8]) -> Result<StreamEntry, RecordError> {
    let (head, message) = decode_head(payload)?;
    let record = MessageRecord::decode(message)?;
    let subject = record.address.subject.as_bytes();
    Ok(StreamEntry {
        sequence: head.sequence,
        bytes: stored_bytes(subject, &record.view()),
        subject: Box::from(subject),
        time: record.time,
        properties: record.properties,
        count: record.properties.is_count.then(|| Box::from(record.body)),
    })
}

/// The fields of an entry before its message.
struct EntryHead {
    failures: u32,
    sequence: u64,
    is_redelivered: bool,
    is_rejected: bool,
    /// The due time and the priority of a delayed entry.
    delayed: Option<(Time, u8)>,
}

fn decode_head(payload: &[u8]) -> Result<(EntryHead, &[u8]), RecordError> {
    let is_delayed = payload.first() == Some(&DELAYED_VERSION);
    let mut fields = Fields::of(payload, if is_delayed { DELAYED_VERSION } else { VERSION })?;
    let flags = fields.u8()?;
    let (failures, sequence) = (fields.u32()?, fields.u64()?);
    let delayed = if is_delayed { Some((Time(fields.u64()?), fields.u8()?)) } else { None };
    let (is_redelivered, is_rejected) = (flags & REDELIVERED != 0, flags & REJECTED != 0);
    let head = EntryHead { failures, sequence, is_redelivered, is_rejected, delayed };
    Ok((head, fields.rest()))
}

fn push_entry(out: &mut Vec<u8>, entry: &Entry, due: Option<Time>) {
    let Envelope { address, sequence, since, deaths, failures, .. } = &entry.envelope;
    let view = entry.message.view();
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    let flags = flag(entry.envelope.is_redelivered, REDELIVERED) | flag(entry.envelope.is_rejected, REJECTED);
    let version = if due.is_some() { DELAYED_VERSION } else { VERSION };
    out.extend_from_slice(&[version, flags]);
    out.extend_from_slice(&failures.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    if let Some(due) = due {
        out.extend_from_slice(&due.0.to_le_bytes());
        out.push(entry.envelope.priority);
    }
    let address = AddressView::new(address);
    push_message(out, &view, &address, deaths.as_deref(), (&[], InStreams::default()), *since);
}

#[cfg(test)]
mod tests {
    use super::super::message::encode_message;
    use super::*;
    use crate::message::{MessageView, OriginId, Properties};

    /// The bytes before the message, in version 5.
    const PLAIN: [u8; 14] = [5, 1, 2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0];

    fn message() -> Vec<u8> {
        let properties = Properties::new(OriginId::BROKER);
        let view = MessageView { properties: &properties, text: b"", body: b"body" };
        let address = Arc::new(crate::message::Address::new(b"x", b"k"));
        encode_message(&view, &AddressView::new(&address), None, &[], Time(265))
    }

    #[test]
    fn entries_of_both_versions_are_read_and_no_other() {
        let gauge = Gauge::default();
        let rejected = [&[5, 3], &PLAIN[2..]].concat();
        let delayed = [&[6], &PLAIN[1..], &[5, 1, 0, 0, 0, 0, 0, 0, 4]].concat();
        let due = Some(Time(261));
        for (head, is_rejected, priority, due) in
            [(&PLAIN[..], false, 0, None), (&rejected, true, 0, None), (&delayed, false, 4, due)]
        {
            let bytes = [head, &message()].concat();
            let entry = decode_page_entry(Lsn(6), &bytes, &gauge).expect("it is one");
            let Envelope { sequence, lsn, since, failures, is_redelivered, .. } = entry.envelope;
            assert_eq!((sequence, lsn, since), (7, Lsn(6), Time(265)));
            assert_eq!((failures, is_redelivered, entry.envelope.priority), (2, true, priority));
            assert_eq!(entry.envelope.is_rejected, is_rejected);
            let mut written = Vec::new();
            push_entry(&mut written, &entry, due);
            assert_eq!(written, bytes, "what is written is what was");
            let found = decode_delayed_entry(Lsn(6), &bytes)
                .map(|found| (found.due, found.sequence, found.body_bytes));
            assert_eq!(found.ok(), due.map(|due| (due, 7, 4)));
            for len in 0..head.len() {
                assert_eq!(
                    decode_page_entry(Lsn(6), &bytes[..len], &gauge).err(),
                    Some(RecordError::Truncated)
                );
            }
        }
        for other in [3, 4, 7] {
            let read = decode_page_entry(Lsn(6), &[other; 99], &gauge).err();
            assert_eq!(read, Some(RecordError::Version(other)));
        }
    }
}
