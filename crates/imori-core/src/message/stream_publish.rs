//! What a publisher asks of the streams that get its message. A protocol reads it once, when the message arrives.

use std::borrow::Cow;
use std::sync::Arc;

use super::schedule::Schedule;
use crate::confirm::Lsn;

/// The earlier messages that a message replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollup {
    /// Those of its subject.
    Subject,
    /// All of the stream.
    All,
}

/// The place of a message in a batch that is stored as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchPublish<'a> {
    /// The id of the batch.
    pub id: Cow<'a, [u8]>,
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
    /// What the answer tells.
    pub receipt: Receipt<'a>,
    /// The record up to which the journal has to be durable before readers may see the message, if that is not its own.
    pub through: Option<Lsn>,
}

impl<'a> From<&'a StreamPublish<'a>> for StreamAsks<'a> {
    fn from(headers: &'a StreamPublish<'a>) -> StreamAsks<'a> {
        StreamAsks { headers: Some(headers), ..StreamAsks::default() }
    }
}

/// What the headers of a message ask of a stream. The default asks for nothing.
#[derive(Debug, Default, Clone)]
pub struct StreamPublish<'a> {
    /// The name of the stream.
    pub stream: Option<Cow<'a, [u8]>>,
    /// The sequence number of the stream's last message.
    pub last_sequence: Option<u64>,
    /// The id of the stream's last message.
    pub last_id: Option<Cow<'a, [u8]>>,
    /// The sequence number of the last message of a subject, and that subject if it is not the message's own.
    pub last_of_subject: Option<(u64, Option<Cow<'a, [u8]>>)>,
    /// The messages that this one replaces.
    pub rollup: Option<Rollup>,
    /// The message has a time after which it goes, or stays for ever.
    pub has_ttl: bool,
    /// The schedule on which the stream publishes the message.
    pub schedule: Option<Arc<Schedule>>,
    /// The subject of the schedule that ends with this message.
    pub ended_schedule: Option<Cow<'a, [u8]>>,
    /// A message that leaves the stream with the arrival of this one.
    pub replaced: Option<u64>,
    /// What is added to the counter of the subject.
    pub increment: Option<Cow<'a, [u8]>>,
    /// The place in a batch.
    pub batch: Option<BatchPublish<'a>>,
}

impl StreamPublish<'_> {
    /// A copy that does not borrow from the publisher's buffer.
    pub(crate) fn to_owned(&self) -> StreamPublish<'static> {
        let own = |bytes: &Cow<'_, [u8]>| Cow::Owned(bytes.to_vec());
        StreamPublish {
            stream: self.stream.as_ref().map(own),
            last_sequence: self.last_sequence,
            last_id: self.last_id.as_ref().map(own),
            last_of_subject: self.last_of_subject.as_ref().map(|(last, of)| (*last, of.as_ref().map(own))),
            rollup: self.rollup,
            has_ttl: self.has_ttl,
            schedule: self.schedule.clone(),
            ended_schedule: self.ended_schedule.as_ref().map(own),
            replaced: self.replaced,
            increment: self.increment.as_ref().map(own),
            batch: self.batch.as_ref().map(|batch| BatchPublish {
                id: own(&batch.id),
                number: batch.number,
                end: batch.end,
            }),
        }
    }
}
