//! A message in a queue, with what the queue knows about it.

use std::mem::size_of;
use std::sync::Arc;

use super::pages::PageId;
use crate::delivery::Delivery;
use crate::message::{AddressView, Envelope, Message, MessageView, Properties};

/// Bytes of an entry of a page besides the headers and the body: its own head, that of the record, an address.
const WRITTEN_BESIDES_BYTES: usize = 128;

/// A message in a queue.
#[derive(Debug, Clone)]
pub struct Entry {
    pub(crate) message: Arc<Message>,
    pub(crate) envelope: Envelope,
    /// The page that it also is in, on disk or on its way there.
    pub(crate) page: Option<PageId>,
    /// Where it stands among all that its queue had in any life: pages are put in order by it.
    pub(crate) position: u64,
}

impl Entry {
    /// Bytes that an entry keeps besides its message.
    pub(crate) const CHARGE: usize = size_of::<Entry>();

    /// An entry that is in no page.
    pub(crate) fn new(message: Arc<Message>, envelope: Envelope) -> Entry {
        Entry { message, envelope, page: None, position: 0 }
    }

    /// Milliseconds for which the publisher of a message lets it wait. That was meant for the first queue, and would
    /// lose a dead letter, so that a dead letter has none.
    pub(crate) fn expiration_ms(properties: &Properties, is_dead_letter: bool) -> Option<u32> {
        properties.expiration_ms.filter(|_| !is_dead_letter)
    }

    /// The message.
    pub fn message(&self) -> &Arc<Message> {
        &self.message
    }

    /// Its circumstances in the queue.
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub(crate) fn address(&self) -> AddressView<'_> {
        AddressView::new(&self.envelope.address)
    }

    pub(crate) fn delivery<'a>(&'a self, address: &'a AddressView<'a>) -> Delivery<'a> {
        Delivery {
            message: self.message.view(),
            address,
            deaths: self.envelope.deaths.as_ref(),
            sequence: self.envelope.sequence,
            failures: self.envelope.failures,
            is_redelivered: self.envelope.is_redelivered,
            is_last: false,
        }
    }

    pub(crate) fn body_bytes(&self) -> u64 {
        self.message.view().body.len() as u64
    }

    /// About how many bytes it takes in a page.
    pub(crate) fn written_bytes(&self) -> usize {
        let view = self.message.view();
        let annotations = self.envelope.deaths.as_ref().and_then(|deaths| deaths.annotations());
        WRITTEN_BESIDES_BYTES + view.text.len() + view.body.len() + annotations.map_or(0, <[u8]>::len)
    }

    /// Bytes of memory that one of this message would keep, or about so many.
    pub(crate) fn memory_of(view: &MessageView<'_>) -> usize {
        Entry::CHARGE + Message::charge_of(view)
    }

    /// Bytes of memory that it keeps with its message, which other queues may share.
    pub(crate) fn memory(&self) -> usize {
        Entry::CHARGE + self.message.charge()
    }
}
