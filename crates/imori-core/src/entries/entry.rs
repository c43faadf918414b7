//! A message in a queue, with what the queue knows about it.

use std::mem::size_of;
use std::sync::Arc;

use super::pages::PageId;
use crate::delivery::Delivery;
use crate::message::{AddressView, Envelope, Message, MessageView, Properties};

/// Bytes of an entry in a page besides headers and body: its own header, the record's header, an address.
const WRITTEN_BESIDES_BYTES: usize = 128;

/// A message in a queue.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) message: Arc<Message>,
    pub(crate) envelope: Envelope,
    /// The page that also has the entry, on disk or about to be written.
    pub(crate) page: Option<PageId>,
    /// The entry's place among all that its queue ever had, across restarts; it orders the pages.
    pub(crate) position: u64,
}

impl Entry {
    /// Bytes that an entry occupies besides its message.
    pub(crate) const CHARGE: usize = size_of::<Entry>();

    /// An entry that is in no page.
    pub(crate) fn new(message: Arc<Message>, envelope: Envelope) -> Entry {
        Entry { message, envelope, page: None, position: 0 }
    }

    /// The publisher's time to live in milliseconds. It was meant for the first queue, and would lose a dead
    /// letter, so a dead letter has none.
    pub(crate) fn expiration_ms(properties: &Properties, is_dead_letter: bool) -> Option<u32> {
        properties.expiration_ms.filter(|_| !is_dead_letter)
    }

    /// The message, shared with the other queues that have it.
    pub fn message(&self) -> &Arc<Message> {
        &self.message
    }

    /// The state of the message in its queue.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub(crate) fn address(&self) -> AddressView<'_> {
        AddressView::new(&self.envelope.address)
    }

    pub(crate) fn delivery<'a>(&'a self, address: &'a AddressView<'a>) -> Delivery<'a> {
        Delivery {
            message: self.message.view(),
            shared_body: self.message.shared_body(),
            address,
            deaths: self.envelope.deaths.as_ref(),
            sequence: self.envelope.sequence,
            failures: self.envelope.failures,
            is_redelivered: self.envelope.is_redelivered,
            is_last: false,
            is_of_stream: false,
        }
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.message.view().body.len() as u64
    }

    /// Estimated bytes that the entry takes in a page.
    pub(crate) fn written_bytes(&self) -> usize {
        let view = self.message.view();
        let annotations = self.envelope.deaths.as_ref().and_then(|deaths| deaths.annotations());
        WRITTEN_BESIDES_BYTES + view.text.len() + view.body.len() + annotations.map_or(0, <[u8]>::len)
    }

    /// Estimated bytes of memory that an entry with this message would occupy.
    pub(crate) fn memory_of(view: &MessageView<'_>) -> usize {
        Entry::CHARGE + Message::charge_of(view)
    }

    /// Bytes of memory that the entry occupies with its message, which other queues may share.
    pub(crate) fn memory(&self) -> usize {
        Entry::CHARGE + self.message.charge()
    }
}
