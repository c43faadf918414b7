//! What a publisher asks of the streams that get its message.

use std::time::Duration;

/// The messages that a message replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rollup {
    /// Those of its subject.
    Subject,
    /// All of the stream.
    All,
}

/// What a publisher asks of a stream. The default asks for nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct StreamPublish<'a> {
    /// The subject to which the stream answers once it has the message at its level of safety.
    pub answer_to: Option<&'a [u8]>,
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
    /// The time after which the message goes.
    pub ttl: Option<Duration>,
}
