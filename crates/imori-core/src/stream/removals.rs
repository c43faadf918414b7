//! What leaves a stream with the arrival of a message.

use crate::message::Rollup;

/// The limits that make messages leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LengthLimits {
    pub(crate) messages: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) per_subject: Option<u64>,
}

impl LengthLimits {
    pub(super) fn are_some(&self) -> bool {
        self.messages.is_some() || self.bytes.is_some() || self.per_subject.is_some()
    }

    /// Whether a stream of this length is too long.
    pub(super) fn are_exceeded(&self, len: u64, bytes: u64) -> bool {
        self.messages.is_some_and(|max| len > max) || self.bytes.is_some_and(|max| bytes > max)
    }
}

/// The messages that leave a stream with the arrival of another.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Removals {
    /// Earlier messages that it replaces.
    pub rollup: Option<Rollup>,
    /// The subject of the schedule that it ends, whose earlier messages go.
    pub ended_schedule: Option<Box<[u8]>>,
    /// Messages that give way to it, by sequence number.
    pub dropped: Vec<u64>,
}

impl Removals {
    /// Whether no message leaves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rollup.is_none() && self.ended_schedule.is_none() && self.dropped.is_empty()
    }

    pub(super) fn clear(&mut self) {
        (self.rollup, self.ended_schedule) = (None, None);
        self.dropped.clear();
    }
}

/// A message that has a number and is not in the stream yet.
#[derive(Debug, Default)]
pub(crate) struct Arriving {
    pub(super) sequence: u64,
    pub(super) subject: Vec<u8>,
    pub(super) bytes: u32,
    pub(crate) removals: Removals,
}
