//! The messages that a stream sends by itself, and the form that a protocol gives them.

use std::fmt;
use std::time::Duration;

use super::consumer::Position;
use super::get::GetForm;
use super::pull::PullEnd;
use super::settings::ConsumerSettings;
use crate::confirm::Level;
use crate::entries::Entry;
use crate::message::{HeaderReaders, Properties, Receipt, Rollup, Schedule};
use crate::name::Name;
use crate::room::Unavailable;
use crate::time::Time;

/// The facts of a delivery that its acknowledgement repeats.
#[derive(Debug, Clone, Copy)]
pub struct ConsumerDelivery<'a> {
    /// The name of the stream that has the message.
    pub stream: &'a Name,
    /// The name of the consumer that delivers it.
    pub consumer: &'a Name,
    /// How often the message was delivered, this time included.
    pub deliveries: u64,
    /// The number of the delivery and of the message.
    pub place: Position,
    /// When the message came.
    pub time: Time,
    /// Number of messages that wait behind it.
    pub unread: u64,
    /// The pin of the client that gets it, of a consumer that serves only one.
    pub pin: Option<&'a Name>,
}

/// A message that a stream sends.
#[derive(Debug, Clone, Copy)]
pub enum StreamMessage<'a> {
    /// A delivery of a consumer.
    Delivery {
        /// The message.
        entry: &'a Entry,
        /// The facts that are acknowledged.
        delivery: ConsumerDelivery<'a>,
        /// The body stays away, and its size is told.
        has_headers_only: bool,
    },
    /// A message that was asked for by number or subject.
    Direct {
        /// The name of the stream that has the message.
        stream: &'a Name,
        /// The message.
        entry: &'a Entry,
        /// For a batch: number of messages that follow, and the number of the message before.
        batch: Option<(u64, u64)>,
    },
    /// A message that was asked for by a request of an operator.
    Stored {
        /// The message.
        entry: &'a Entry,
    },
    /// The message that was asked for is not there.
    NotFound(GetForm),
    /// An answer in the form of its protocol.
    Answer(&'a [u8]),
    /// A batch of messages that were asked for is at its end: the last message of the stream, and of the batch.
    BatchEnd {
        /// Number of messages that match and were not sent.
        left: u64,
        /// The sequence number of the last message of the stream when the batch began.
        up_to: u64,
        /// The sequence number of the last message of the batch.
        last: u64,
    },
    /// A request for messages ended.
    PullEnded {
        /// Why.
        end: PullEnd,
        /// Messages that it did not get.
        left: u64,
        /// Bytes that it did not get; 0 without a limit.
        bytes_left: u64,
    },
    /// A consumer lives and has nothing to deliver.
    Heartbeat {
        /// The latest delivery.
        delivered: Position,
        /// The request of flow control that the reader has not answered.
        unanswered: Option<FlowRequest<'a>>,
    },
    /// The reader of a consumer is to answer once it has read everything before.
    FlowControl(FlowRequest<'a>),
    /// A stored message is published again.
    Republished {
        /// The name of the stream that has the message.
        stream: &'a Name,
        /// The message.
        entry: &'a Entry,
        /// The sequence number of the message of the subject before it; 0 for none.
        before: u64,
        /// The body stays away, and its size is told.
        has_headers_only: bool,
    },
    /// The last message of a subject expired.
    Marker {
        /// Time to live of the marker.
        ttl: Duration,
    },
    /// What a schedule publishes.
    Scheduled {
        /// The stored message that has the schedule.
        entry: &'a Entry,
        /// The schedule.
        schedule: &'a Schedule,
        /// The message that is published.
        content: &'a Entry,
        /// When the schedule publishes the next one; `None` if this is the last.
        next: Option<Time>,
    },
    /// The stream has a published message at its level of safety.
    Published {
        /// The name of the stream that stored it.
        stream: &'a Name,
        /// The sequence number of the message.
        sequence: u64,
        /// The message was there before.
        is_duplicate: bool,
        /// The level of safety.
        level: Level,
        /// What the answer tells besides.
        receipt: Receipt<'a>,
    },
    /// The stream has a message of a batch, which is not committed.
    Staged,
    /// The stream refused a published message.
    Refused {
        /// The name of the stream that refused it.
        stream: &'a Name,
        /// Why.
        refusal: &'a StreamRefusal,
    },
    /// An acknowledgement is recorded.
    Acked,
}

/// A request of flow control, which its answer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowRequest<'a> {
    /// The name of the stream that delivers.
    pub stream: &'a Name,
    /// The name of the consumer whose reader is asked.
    pub consumer: &'a Name,
    /// The number of the request.
    pub number: u64,
}

/// What happened to a consumer or one of its messages.
#[derive(Debug, Clone, Copy)]
pub struct Advisory<'a> {
    /// The name of the stream of the consumer.
    pub stream: &'a Name,
    /// The name of the consumer that it is about.
    pub consumer: &'a Name,
    /// What happened.
    pub what: AdvisoryKind<'a>,
    /// The present time.
    pub time: Time,
}

/// What an advisory tells.
#[derive(Debug, Clone, Copy)]
pub enum AdvisoryKind<'a> {
    /// The consumer was made.
    Created,
    /// The consumer was deleted.
    Deleted,
    /// A message was delivered as often as it may be, and nobody acknowledged it.
    DeliveriesExceeded {
        /// The sequence number of the message.
        sequence: u64,
        /// How often the message was delivered, which is as often as it may be.
        deliveries: u64,
    },
    /// The reader gave a message back.
    Returned {
        /// The number of the delivery and of the message.
        place: Position,
        /// How often the message was delivered, this time included.
        deliveries: u64,
    },
    /// The reader rejected a message.
    Rejected {
        /// The number of the delivery and of the message.
        place: Position,
        /// How often the message was delivered, this time included.
        deliveries: u64,
        /// The reader's words.
        reason: &'a [u8],
    },
    /// The reader acknowledged a message.
    Acknowledged {
        /// The number of the delivery and of the message.
        place: Position,
        /// How often the message was delivered, this time included.
        deliveries: u64,
        /// Time since the delivery.
        delay: Duration,
    },
    /// A client got the pin.
    Pinned {
        /// The id of the pin, which the requests of the client repeat.
        pin: &'a Name,
        /// The settings of the consumer.
        settings: &'a ConsumerSettings,
    },
    /// A client lost the pin.
    Unpinned {
        /// An operator took it.
        is_by_operator: bool,
        /// The settings of the consumer.
        settings: &'a ConsumerSettings,
    },
}

/// Why a stream refuses a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamRefusal {
    /// The stream has as many messages as it may have.
    MaximumMessages,
    /// The stream has as many bytes as it may have.
    MaximumBytes,
    /// The subject has as many messages as it may have.
    MaximumPerSubject,
    /// The message is larger than it may be.
    TooLarge,
    /// The stream is sealed.
    Sealed,
    /// The publisher expects another stream.
    WrongStream,
    /// The publisher expects another last message: the number of the last one.
    WrongLastSequence(u64),
    /// The publisher expects another last message of the subject: the number of the last one.
    WrongLastOfSubject(u64),
    /// The publisher expects another last message id: the last one.
    WrongLastId(Box<[u8]>),
    /// The stream has no messages that replace others.
    RollupDenied,
    /// The stream has no messages with a time to live of their own.
    TtlDenied,
    /// The stream publishes nothing on a schedule.
    ScheduleDenied,
    /// What a schedule publishes would not come to the stream, or replace the schedule.
    ScheduleTarget,
    /// A schedule takes messages that are not in the stream, or itself.
    ScheduleSource,
    /// The message ends a schedule that is none.
    NoSchedule,
    /// The stream has no counters.
    IncrementDenied,
    /// The stream has counters only.
    IncrementMissing,
    /// A message that increments a counter has a body, which the value would replace.
    IncrementBody,
    /// An increment is no number, or expects something.
    IncrementInvalid,
    /// The last message of the subject is no counter.
    CounterBroken,
    /// The value of the counter is being read from disk.
    CounterOnDisk,
    /// The stream takes no batches.
    BatchDenied,
    /// A message of the batch is missing.
    BatchIncomplete,
    /// The batch has more messages than this, or too many bytes.
    BatchTooLarge(u64),
    /// Too many batches are not committed.
    TooManyBatches,
    /// The batch ends in a way that is not known.
    BatchEndUnknown,
    /// The batch has a message id twice, or one that the stream has had.
    BatchDuplicate,
    /// Messages of a batch cannot expect the id of the last message.
    BatchLastId,
    /// A message of a batch expects a sequence number that depends on the batch.
    BatchExpectation,
    /// A message of a batch would replace another one of it.
    BatchRollup(Rollup),
    /// The journal takes no messages now.
    Unavailable(Unavailable),
}

/// The bytes of a message that a stream sends.
#[derive(Debug)]
pub struct StreamForm {
    /// The properties of the header text.
    pub properties: Properties,
    /// The header text.
    pub text: Vec<u8>,
    /// The body; `None` for the body of the stored message that is sent.
    pub body: Option<Vec<u8>>,
}

/// The protocol that gives a stream's messages their form.
pub trait StreamForms: Sync + fmt::Debug {
    /// Writes a message.
    fn form(&self, message: &StreamMessage<'_>, readers: HeaderReaders) -> StreamForm;

    /// The subject that a delivery shows for a message of this stream, if it is not the message's own: a message that
    /// came through another exchange may have one that the protocol cannot express.
    fn subject(&self, stream: &Name, subject: &[u8]) -> Option<Vec<u8>>;

    /// The subject to which an advisory is published.
    fn advisory_subject(&self, advisory: &Advisory<'_>) -> Vec<u8>;

    /// Writes an advisory. `id` is unpredictable.
    fn advisory(&self, advisory: &Advisory<'_>, id: [u8; 16]) -> StreamForm;
}

/// For brokers without a protocol that reads streams by subject.
#[derive(Debug, Clone, Copy)]
pub struct NoStreamForms;

impl StreamForms for NoStreamForms {
    fn form(&self, _: &StreamMessage<'_>, _: HeaderReaders) -> StreamForm {
        let properties = Properties::new(crate::message::OriginId::BROKER);
        StreamForm { properties, text: Vec::new(), body: None }
    }

    fn subject(&self, _: &Name, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn advisory_subject(&self, _: &Advisory<'_>) -> Vec<u8> {
        Vec::new()
    }

    fn advisory(&self, _: &Advisory<'_>, _: [u8; 16]) -> StreamForm {
        let properties = Properties::new(crate::message::OriginId::BROKER);
        StreamForm { properties, text: Vec::new(), body: None }
    }
}
