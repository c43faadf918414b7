//! A message on its way to a reader, and the outcome of that.

use std::borrow::Cow;
use std::sync::Arc;

use crate::confirm::Lsn;
use crate::id::{DurableQueueId, QueueId};
use crate::message::{AddressView, Deaths, Envelope, HeaderReaders, MessageView, Origins};
use crate::time::Time;

/// The facts that all deliveries of a message share, besides the message itself.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Where it was published to.
    pub address: &'a AddressView<'a>,
    /// Its history of deaths, if it was dead-lettered.
    pub deaths: Option<&'a Arc<Deaths>>,
}

impl<'a> About<'a> {
    /// The delivery of a message that nobody was given before.
    pub fn fresh(self, message: MessageView<'a>) -> Delivery<'a> {
        let About { address, deaths } = self;
        Delivery { message, address, deaths, sequence: 0, failures: 0, is_redelivered: false, is_last: true }
    }
}

/// One message for one reader.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The message.
    pub message: MessageView<'a>,
    /// Where it was published to.
    pub address: &'a AddressView<'a>,
    /// Its history, if it has any: deaths, and annotations of consumers.
    pub deaths: Option<&'a Arc<Deaths>>,
    /// The sequence number in the source queue, rising from 1; 0 where the message comes from no queue.
    pub sequence: u64,
    /// Deliveries that failed before.
    pub failures: u32,
    /// The message was given out before.
    pub is_redelivered: bool,
    /// No other message waits where it comes from.
    pub is_last: bool,
}

impl<'a> Delivery<'a> {
    /// Its history of deaths, if it was dead-lettered.
    #[inline]
    pub fn died(&self) -> Option<&'a Arc<Deaths>> {
        self.deaths.filter(|deaths| !deaths.is_empty())
    }

    /// The annotations that consumers added, in the form of the protocol that has such annotations.
    #[inline]
    pub fn annotations(&self) -> Option<&'a [u8]> {
        self.deaths.and_then(|deaths| deaths.annotations())
    }

    /// The body as a receiver gets it whose protocol has `own` origins, where that is not the message's as it is: some
    /// protocols encode bodies.
    #[inline]
    pub fn decoded_body(&self, own: Origins, readers: HeaderReaders) -> Option<Vec<u8>> {
        let origin = self.message.properties.origin;
        if own.form(origin).is_some() {
            return None;
        }
        match readers(origin).body(&self.message) {
            Cow::Borrowed(_) => None,
            Cow::Owned(body) => Some(body),
        }
    }

    /// The delivery with another body.
    #[inline]
    pub fn with_body<'b>(&self, body: &'b [u8]) -> Delivery<'b>
    where
        'a: 'b,
    {
        Delivery { message: MessageView { body, ..self.message }, ..*self }
    }
}

/// The place of a message in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// The queue.
    pub queue: QueueId,
    /// Its sequence number there.
    pub sequence: u64,
}

/// A message in a durable queue, by the record that brought it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordRef {
    /// The queue.
    pub queue: DurableQueueId,
    /// The message's record.
    pub lsn: Lsn,
}

/// The deliveries of a message that is in a durable queue, as its records tell of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryCount {
    /// The message.
    pub record_ref: RecordRef,
    /// Deliveries that failed, or will have failed if nothing else is heard.
    pub failures: u32,
    /// The message was given out before.
    pub is_redelivered: bool,
    /// A consumer or a full queue rejected the message. It stays in its queue, given to nobody, until the disk has
    /// room for the dead letter.
    pub is_rejected: bool,
}

impl DeliveryCount {
    /// Writes it into the envelope of its message.
    pub(crate) fn apply_to(&self, envelope: &mut Envelope) {
        envelope.failures = self.failures;
        envelope.is_redelivered |= self.is_redelivered;
        envelope.is_rejected = self.is_rejected;
    }
}

/// A message that is in a durable queue, and the annotations that consumers have added to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotatedMessage {
    /// The message.
    pub record_ref: RecordRef,
    /// All annotations that it got, in the form of the protocol that has such.
    pub annotations: Box<[u8]>,
}

/// The deliveries of a message before the start, until it is read from its page.
#[derive(Debug)]
pub(crate) struct EarlierDeliveries {
    pub(crate) count: DeliveryCount,
    /// The annotations that it got, if it got any.
    pub(crate) annotations: Option<Box<[u8]>>,
}

impl EarlierDeliveries {
    /// Writes them into the envelope of the message.
    pub(crate) fn apply_to(&self, envelope: &mut Envelope) {
        self.count.apply_to(envelope);
        if let Some(annotations) = &self.annotations {
            envelope.annotate(annotations.clone());
        }
    }
}

/// The id of a message that a queue took, within a window of time in which it takes none of that id again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupEntry {
    /// The message id that the publisher chose.
    pub id: Arc<[u8]>,
    /// When it was accepted.
    pub time: Time,
}

/// A reader's answer to a delivery from a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The reader has the message, and the queue may forget it.
    Settled,
    /// The reader has the message and will settle it.
    Unsettled,
    /// The reader has no credit or no room; it wakes the queue when it has.
    Full,
    /// There is no such reader any more.
    Gone,
}

/// The outcome of a delivery, as its consumer settles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The queue forgets the message, as its work is done.
    Accept,
    /// The message goes back to its place in the queue.
    Release {
        /// The delivery counts as a failed one.
        failed: bool,
    },
    /// The message goes back to its place in the queue, and its consumer does not get it again.
    Refuse {
        /// The delivery counts as a failed one.
        failed: bool,
    },
    /// The message is dead-lettered, or dropped where the queue has no dead-letter exchange.
    Reject,
}
