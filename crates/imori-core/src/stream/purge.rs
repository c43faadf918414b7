//! A purge of a stream.

use super::filter::Filter;

/// What an operator wants to be gone from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamPurge {
    /// The subjects.
    pub filter: Filter,
    /// Messages from this number on stay.
    pub up_to: Option<u64>,
    /// Number of messages that stay, of those that the filter takes.
    pub keep: u64,
}
