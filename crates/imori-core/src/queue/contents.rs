//! The contents of a queue as plain data, to compare them with those of the same queue elsewhere: after a
//! restart, or in another broker.
//!
//! A description has everything that outlives the broker and nothing about where it is stored. Messages
//! without a record, readers, credit and timers are no part of it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::queue::Queue;
use crate::confirm::Lsn;
use crate::delivery::DedupEntry;
use crate::entries::{Entry, Page, PageId, PagePart, PageSource, Part};
use crate::message::{Address, Deaths};
use crate::stream::StreamContents;
use crate::time::Time;

/// What a queue has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// The messages that have a record, the highest priority first, then in the order of the queue.
    pub messages: Vec<KeptMessage>,
    /// The ids of the de-duplication window that have a record, sorted.
    pub ids: Vec<DedupEntry>,
    /// What a stream has besides.
    pub stream: Option<StreamContents>,
}

/// A message in a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMessage {
    /// The record of the message.
    pub record: Lsn,
    /// The sequence number; only a stream keeps it across restarts.
    pub sequence: u64,
    /// What the message waits for.
    pub state: MessageState,
    /// The priority in this queue.
    pub priority: u8,
    /// The address that the message was published or dead-lettered to.
    pub address: Arc<Address>,
    /// When it began to wait.
    pub since: Time,
    /// The publisher's time to live in milliseconds.
    pub expiration_ms: Option<u32>,
    /// The publisher delayed it.
    pub was_delayed: bool,
    /// Number of failed deliveries.
    pub failures: u32,
    /// It was delivered before.
    pub is_redelivered: bool,
    /// It was rejected, and waits for room for the dead letter.
    pub is_rejected: bool,
    /// Its deaths, and the annotations of consumers; empty if there are none.
    pub history: Deaths,
    /// Bytes of the body.
    pub body_bytes: usize,
}

/// What a message in a queue waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// A consumer.
    Ready,
    /// The outcome of its delivery.
    Unsettled,
    /// Room on the disk for its dead letter.
    Dying,
    /// This time.
    Delayed(Time),
}

impl KeptMessage {
    fn of(entry: &Entry, state: MessageState) -> KeptMessage {
        let (envelope, view) = (entry.envelope(), entry.message().view());
        KeptMessage {
            record: envelope.lsn,
            sequence: envelope.sequence,
            state,
            priority: envelope.priority,
            address: Arc::clone(&envelope.address),
            since: envelope.since,
            expiration_ms: envelope.expiration_ms,
            was_delayed: view.properties.delay_ms.is_some() && !Deaths::any(envelope.deaths.as_ref()),
            failures: envelope.failures,
            is_redelivered: envelope.is_redelivered,
            is_rejected: envelope.is_rejected,
            history: envelope.deaths.as_deref().cloned().unwrap_or_default(),
            body_bytes: view.body.len(),
        }
    }
}

/// Reads the entries of a page as they stand on disk; `None` if it cannot be read.
pub type ReadEntries<'r> = dyn FnMut(&PageSource) -> Option<Vec<Entry>> + 'r;

impl Queue {
    /// Describes the queue at the time `now`, and changes nothing. Pages that are only on disk are read through
    /// `read`. `None` if one cannot be read, or is still being written.
    pub fn contents(&self, now: Time, read: &mut ReadEntries<'_>) -> Option<Contents> {
        let mut messages = Vec::new();
        for lane in self.ready.lanes() {
            let mut entries: Vec<Entry> = lane.released.values().cloned().collect();
            for part in &lane.parts {
                match part {
                    Part::Memory(run) => entries.extend(run.iter().cloned()),
                    Part::Page(part) => {
                        entries.extend(self.read_part(self.pages.get(part.id)?, part, read)?);
                    }
                    Part::Packed(packed) => {
                        for (page, part) in packed.iter() {
                            entries.extend(self.read_part(&page, &part, read)?);
                        }
                    }
                }
            }
            messages.extend(entries.iter().map(|entry| KeptMessage::of(entry, MessageState::Ready)));
        }
        messages.extend(self.unsettled.values().map(|entry| {
            let is_dying = self.is_pending_dead_letter(entry);
            KeptMessage::of(entry, if is_dying { MessageState::Dying } else { MessageState::Unsettled })
        }));
        messages.extend(self.delayed_contents(read)?);
        let mut ids = self.dedup.as_ref().map(|dedup| dedup.recorded(now)).unwrap_or_default();
        if self.stream.is_none() {
            // A restart gives the messages other numbers.
            ids.iter_mut().for_each(|entry| entry.sequence = 0);
        }
        messages.retain(|message| message.record != Lsn::NONE);
        messages.sort_by_key(|message| (Reverse(message.priority), message.sequence));
        Some(Contents {
            messages,
            ids,
            stream: self.stream.as_ref().map(|stream| stream.contents(self.next_sequence)),
        })
    }

    /// The messages of a part that is on disk. A page of this run alone has no message with a record.
    fn read_part(&self, page: &Page, part: &PagePart, read: &mut ReadEntries<'_>) -> Option<Vec<Entry>> {
        if !page.is_durable {
            return Some(Vec::new());
        }
        let peeked = self.peek_page(page, part, 0, usize::MAX)?;
        let mut entries = peeked.pick(read(&peeked.source)?);
        entries.iter_mut().for_each(|entry| self.recall(entry));
        Some(entries)
    }

    fn delayed_contents(&self, read: &mut ReadEntries<'_>) -> Option<Vec<KeptMessage>> {
        let Some(delayed) = &self.delayed else { return Some(Vec::new()) };
        let in_memory = delayed.in_memory();
        let mut messages: Vec<KeptMessage> =
            in_memory.map(|((due, _), entry)| KeptMessage::of(entry, MessageState::Delayed(due))).collect();
        let mut of_pages: BTreeMap<PageId, BTreeMap<u64, (Time, bool)>> = BTreeMap::new();
        for ((due, sequence), stub) in delayed.on_disk() {
            of_pages.entry(stub.page).or_default().insert(sequence, (due, stub.is_redelivered));
        }
        for (id, stubs) in of_pages {
            let page = self.pages.get(id)?;
            if !page.is_durable {
                continue;
            }
            for mut entry in read(&page.source()?)? {
                let Some((due, is_redelivered)) = stubs.get(&entry.envelope.sequence) else { continue };
                self.recall(&mut entry);
                entry.envelope.is_redelivered |= is_redelivered;
                messages.push(KeptMessage::of(&entry, MessageState::Delayed(*due)));
            }
        }
        Some(messages)
    }
}
