//! Requests for single messages of a stream, and for batches of them.

use std::collections::VecDeque;

use crate::index::Filter;
use crate::name::Name;
use crate::time::Time;

/// The message that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageQuery {
    /// The one with this sequence number.
    Sequence(u64),
    /// The newest one that a filter takes.
    LastOf(Filter),
    /// The first one from a sequence number on that a filter takes.
    NextOf(u64, Filter),
    /// The first one that came at this time or later and that a filter takes.
    Since(Time, Filter),
}

/// The form in which a message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetForm {
    /// As the message itself.
    Direct,
    /// As an answer to an operator.
    Stored,
}

/// A request for messages, which goes on until it has them.
#[derive(Debug, Clone)]
pub struct Get {
    /// The subject of the answer.
    pub reply: Name,
    /// The form of the answer.
    pub form: GetForm,
    /// The messages that are still to be sent.
    pub(crate) wants: VecDeque<MessageQuery>,
    /// For a batch: how many messages match beyond those, and the last message of the stream when it began.
    pub(crate) batch: Option<Batch>,
}

/// The progress of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Batch {
    pub(crate) left: u64,
    pub(crate) up_to: u64,
    pub(crate) last: u64,
}

impl Get {
    /// A request for one message.
    #[must_use]
    pub fn one(reply: Name, form: GetForm, wanted: MessageQuery) -> Get {
        Get { reply, form, wants: VecDeque::from([wanted]), batch: None }
    }

    /// A request for several messages by their numbers, of `matching` that match. `up_to` is the last number that the
    /// stream has now.
    pub(crate) fn batch(reply: Name, sequences: Vec<u64>, matching: u64, up_to: u64) -> Get {
        let left = matching.saturating_sub(sequences.len() as u64);
        let wants = sequences.into_iter().map(MessageQuery::Sequence).collect();
        Get { reply, form: GetForm::Direct, wants, batch: Some(Batch { left, up_to, last: 0 }) }
    }
}
