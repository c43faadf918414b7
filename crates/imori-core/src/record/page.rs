//! An entry of a page: what its queue knows of a message, and the message as its record has it.
//!
//! `version u8, flags u8, failures u32, sequence u64, deadline u64`, the last only if the flags name it, and the
//! payload of a message's record, in which no queue stands.

use std::sync::Arc;

use super::fields::{Fields, RecordError};
use super::message::{MessageRecord, encode_message};
use crate::confirm::Lsn;
use crate::memory::Gauge;
use crate::message::{AddressView, Envelope, Message};
use crate::queue::{Entry, PageDraft};
use crate::time::Time;

const VERSION: u8 = 1;

const REDELIVERED: u8 = 1;
const DEADLINE: u8 = 1 << 1;

/// An entry of a page, to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageEntry {
    /// The number of its record; [`Lsn::NONE`] where it has none.
    pub lsn: Lsn,
    /// Its position: higher than that of every entry before it in its priority.
    pub position: u64,
    /// What it says.
    pub payload: Vec<u8>,
}

/// Writes the entries of a page.
#[must_use]
pub fn encode_page(draft: &PageDraft) -> Vec<PageEntry> {
    let entries = draft.entries.iter().map(|entry| {
        let lsn = if draft.is_durable { entry.envelope.lsn } else { Lsn::NONE };
        PageEntry { lsn, position: entry.position, payload: encode_entry(entry) }
    });
    entries.collect()
}

/// Reads an entry of a page; its message is charged to `gauge`.
///
/// # Errors
/// [`RecordError`].
pub fn decode_page_entry(lsn: Lsn, payload: &[u8], gauge: &Gauge) -> Result<Entry, RecordError> {
    let mut fields = Fields::of(payload, VERSION)?;
    let flags = fields.u8()?;
    let (failures, sequence) = (fields.u32()?, fields.u64()?);
    let deadline = if flags & DEADLINE != 0 { Some(Time(fields.u64()?)) } else { None };
    let record = MessageRecord::decode(fields.rest())?;
    let message = Message::store(&record.view(), None, gauge);
    let envelope = Envelope {
        address: Arc::new(record.address),
        sequence,
        lsn,
        deadline,
        deaths: record.deaths,
        failures,
        is_redelivered: flags & REDELIVERED != 0,
        priority: 0,
    };
    Ok(Entry::new(message, envelope))
}

fn encode_entry(entry: &Entry) -> Vec<u8> {
    let Envelope { address, sequence, deadline, deaths, failures, is_redelivered, .. } = &entry.envelope;
    let view = entry.message.view();
    let mut out = Vec::with_capacity(128 + view.text.len() + view.body.len());
    let flags = if *is_redelivered { REDELIVERED } else { 0 } | if deadline.is_some() { DEADLINE } else { 0 };
    out.extend_from_slice(&[VERSION, flags]);
    out.extend_from_slice(&failures.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    deadline.iter().for_each(|deadline| out.extend_from_slice(&deadline.0.to_le_bytes()));
    let address = AddressView::new(address);
    // When it came is in its deadline already.
    out.extend_from_slice(&encode_message(&view, &address, deaths.as_deref(), &[], Time(0)));
    out
}
