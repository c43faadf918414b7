//! What a publisher asks of the streams that get its message.

use crate::confirm::Lsn;
use crate::time::Time;

/// The messages that a message replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollup {
    /// Those of its subject.
    Subject,
    /// All of the stream.
    All,
}

/// The part that a message has in its stream besides being read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MessageRole {
    /// The message stays whatever the limit of age is.
    pub never_expires: bool,
    /// The message tells that its subject was deleted.
    pub is_marker: bool,
    /// When the stream publishes it next.
    pub next_due: Option<Time>,
}

/// A message that the stream publishes again on a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulePublish<'a> {
    /// The subject to publish to.
    pub target: &'a [u8],
    /// The subject whose last message is published instead.
    pub source: Option<&'a [u8]>,
    /// What is published has a time to live.
    pub has_ttl: bool,
}

/// The place of a message in a batch that is stored as a whole or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPublish<'a> {
    /// The id of the batch.
    pub id: &'a [u8],
    /// The number of the message, from 1.
    pub number: u64,
    /// The end of the batch, if it is here.
    pub end: Option<BatchEnd>,
}

/// Where a batch ends, so that it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchEnd {
    /// This message is the last one.
    Here,
    /// The message before this one is the last; this one is not stored.
    Before,
    /// An end that no stream knows.
    Unknown,
}

/// What the answer to a publish tells besides the sequence number.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Receipt<'a> {
    /// Nothing.
    #[default]
    Plain,
    /// The value of the counter.
    Count(&'a [u8]),
    /// The id of the batch and the number of its messages.
    Batch(&'a [u8], u64),
}

/// What a publisher asks of the streams that get its message. The default asks for nothing.
///
/// Most publishes ask for an answer at most, so what few ask for is behind a reference.
#[derive(Debug, Default, Clone, Copy)]
pub struct StreamAsks<'a> {
    /// The subject to which a stream answers once it has the message at its level of safety.
    pub answer_to: Option<&'a [u8]>,
    /// What the headers ask; `None` if no header is for streams.
    pub headers: Option<&'a StreamPublish<'a>>,
}

impl<'a> From<&'a StreamPublish<'a>> for StreamAsks<'a> {
    fn from(headers: &'a StreamPublish<'a>) -> StreamAsks<'a> {
        StreamAsks { answer_to: None, headers: Some(headers) }
    }
}

/// What the headers of a message ask of a stream. The default asks for nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct StreamPublish<'a> {
    /// The name of the stream.
    pub stream: Option<&'a [u8]>,
    /// The sequence number of the stream's last message.
    pub last_sequence: Option<u64>,
    /// The id of the stream's last message.
    pub last_id: Option<&'a [u8]>,
    /// The sequence number of the last message of a subject, and that subject if it is not the message's own.
    pub last_of_subject: Option<(u64, Option<&'a [u8]>)>,
    /// The messages that this one replaces.
    pub rollup: Option<Rollup>,
    /// The message has a time after which it goes, or stays for ever.
    pub has_ttl: bool,
    /// The part that the message has in the stream.
    pub role: MessageRole,
    /// The schedule on which the stream publishes the message.
    pub schedule: Option<SchedulePublish<'a>>,
    /// The subject of the schedule that ends with this message.
    pub ended_schedule: Option<&'a [u8]>,
    /// What is added to the counter of the subject.
    pub increment: Option<&'a [u8]>,
    /// The place in a batch.
    pub batch: Option<BatchPublish<'a>>,
    /// What the answer tells.
    pub receipt: Receipt<'a>,
    /// The record up to which the journal has to be durable before readers may see the message, if that is not its own.
    pub through: Option<Lsn>,
}
