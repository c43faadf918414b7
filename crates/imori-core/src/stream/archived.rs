//! The messages and consumers of a stream that come back from an archive.

use std::sync::Arc;

use bytes::Bytes;

use crate::message::{Properties, Schedule};
use crate::name::Name;
use crate::time::Time;

/// A message that is put back into a stream with the number and the time that it had.
#[derive(Debug, Clone)]
pub struct ArchivedMessage {
    /// Its sequence number in the stream. Numbers rise from message to message, with gaps.
    pub sequence: u64,
    /// When the stream stored it.
    pub time: Time,
    /// The subject under which it was stored.
    pub subject: Name,
    /// The schedule on which the stream publishes it again.
    pub schedule: Option<Arc<Schedule>>,
    /// The properties, whose origin names the form of `text`.
    pub properties: Properties,
    /// The header text, in the form that the properties name.
    pub text: Box<[u8]>,
    /// The body as it was stored.
    pub body: Bytes,
}
