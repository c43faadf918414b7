//! Deliveries of messages to readers, and their outcomes.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::confirm::Lsn;
use crate::id::{DurableQueueId, QueueId};
use crate::message::{AddressView, Deaths, Envelope, HeaderReaders, MessageView, Origins, Publication};
use crate::time::Time;

/// The facts, besides the message itself, that all its deliveries share.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The address it was published to.
    pub address: &'a AddressView<'a>,
    /// Its history, if it was dead-lettered.
    pub deaths: Option<&'a Arc<Deaths>>,
}

impl<'a> About<'a> {
    /// A first delivery of a message to a live receiver.
    pub fn fresh(self, message: MessageView<'a>) -> Delivery<'a> {
        let About { address, deaths } = self;
        Delivery {
            message,
            shared_body: None,
            address,
            deaths,
            sequence: 0,
            failures: 0,
            is_redelivered: false,
            is_last: true,
            is_of_stream: false,
        }
    }

    /// As [`About::fresh`], with a body that the receiver can share with the publication.
    #[inline]
    pub fn first(self, publication: &'a Publication<'_>) -> Delivery<'a> {
        Delivery { shared_body: publication.shared_body(), ..self.fresh(publication.view()) }
    }
}

/// A message for one reader.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The properties, headers and body that the encoder writes.
    pub message: MessageView<'a>,
    /// Its body, if that has a buffer of its own, so that a receiver in the process need not copy it.
    pub shared_body: Option<&'a Bytes>,
    /// The address it was published to.
    pub address: &'a AddressView<'a>,
    /// Its history, if any: deaths, and annotations of consumers.
    pub deaths: Option<&'a Arc<Deaths>>,
    /// Its sequence number in the source queue, rising from 1; 0 if it does not come from a queue.
    pub sequence: u64,
    /// The number of failed deliveries.
    pub failures: u32,
    /// Whether it was delivered before.
    pub is_redelivered: bool,
    /// Whether no other message is ready at its source.
    pub is_last: bool,
    /// Whether it comes from a stream, whose readers are told the sequence number.
    pub is_of_stream: bool,
}

impl<'a> Delivery<'a> {
    /// Its offset, if it comes from a stream: offsets count from 0, sequence numbers from 1.
    #[inline]
    pub fn offset(&self) -> Option<i64> {
        let offset = self.sequence.checked_sub(1).filter(|_| self.is_of_stream)?;
        Some(i64::try_from(offset).unwrap_or(i64::MAX))
    }

    /// Its history of deaths, if it was dead-lettered.
    #[inline]
    pub fn died(&self) -> Option<&'a Arc<Deaths>> {
        self.deaths.filter(|deaths| !deaths.is_empty())
    }

    /// The annotations that consumers added, in the format of the protocol that supports them.
    #[inline]
    pub fn annotations(&self) -> Option<&'a [u8]> {
        self.deaths.and_then(|deaths| deaths.annotations())
    }

    /// The decoded body, if the receiver's protocol, which has `own` origins, needs one that
    /// differs from the stored bytes: some protocols encode bodies. `None` if the body can be sent
    /// as it is.
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

    /// The same delivery with another body.
    #[inline]
    pub fn with_body<'b>(&self, body: &'b [u8]) -> Delivery<'b>
    where
        'a: 'b,
    {
        Delivery { message: MessageView { body, ..self.message }, shared_body: None, ..*self }
    }
}

/// The position of a message in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePosition {
    /// The queue that holds the message, for as long as the broker runs.
    pub queue: QueueId,
    /// The message's sequence number in it.
    pub sequence: u64,
}

/// Messages of a queue that were purged, as a range of their records. The range may contain records of other queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PurgedRecords {
    /// The queue.
    pub queue: DurableQueueId,
    /// The lowest record.
    pub first: Lsn,
    /// The highest record.
    pub last: Lsn,
}

/// A message in a durable queue, identified by the record that put it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordRef {
    /// The queue that holds the message, by the id that outlives the broker.
    pub queue: DurableQueueId,
    /// The message's record.
    pub lsn: Lsn,
}

/// Past deliveries of a message in a durable queue, as recorded in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryCount {
    /// The message.
    pub record_ref: RecordRef,
    /// The number of failed deliveries, including those unsettled, which fail unless the journal
    /// says otherwise.
    pub failures: u32,
    /// Whether the message was delivered before.
    pub is_redelivered: bool,
    /// Whether a consumer or a full queue rejected the message. It stays in its queue,
    /// undeliverable, until the disk has room for the dead letter.
    pub is_rejected: bool,
}

impl DeliveryCount {
    /// Copies these values into the envelope of the message.
    pub(crate) fn apply_to(&self, envelope: &mut Envelope) {
        envelope.failures = self.failures;
        envelope.is_redelivered |= self.is_redelivered;
        envelope.is_rejected = self.is_rejected;
    }
}

/// A message in a durable queue, with the annotations that consumers have added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotatedMessage {
    /// The message.
    pub record_ref: RecordRef,
    /// All its annotations, in the format of the protocol that supports them.
    pub annotations: Box<[u8]>,
}

/// The deliveries of a message before a restart, kept until the message is read from its page.
#[derive(Debug)]
pub(crate) struct EarlierDeliveries {
    pub(crate) count: DeliveryCount,
    /// Its annotations, if any.
    pub(crate) annotations: Option<Box<[u8]>>,
}

impl EarlierDeliveries {
    /// Copies these values into the envelope of the message.
    pub(crate) fn apply_to(&self, envelope: &mut Envelope) {
        self.count.apply_to(envelope);
        if let Some(annotations) = &self.annotations {
            envelope.annotate(annotations.clone());
        }
    }
}

/// The id of a message that a queue accepted, and refuses to accept again within a window of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DedupEntry {
    /// The message id that the publisher chose.
    pub id: Arc<[u8]>,
    /// The time of acceptance.
    pub time: Time,
    /// The sequence number of its message in a stream; 0 for other queues.
    pub sequence: u64,
}

/// A reader's response to an offered delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// The reader has the message and will not settle it; the queue forgets it.
    Settled,
    /// The reader has the message and will settle it.
    Unsettled,
    /// The reader has no credit or no room; it wakes the queue later.
    Full,
    /// The reader no longer exists.
    Gone,
}

/// The outcome with which a consumer settles a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The message is done, and the queue forgets it.
    Accept,
    /// The message returns to its position in the queue.
    Release {
        /// Whether the delivery counts as failed.
        failed: bool,
    },
    /// The message returns to its position in the queue, but not to the same consumer.
    Refuse {
        /// Whether the delivery counts as failed.
        failed: bool,
    },
    /// The message is dead-lettered, or dropped if the queue has no dead-letter exchange.
    Reject,
}
