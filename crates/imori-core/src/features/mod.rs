//! Rarely used parts of a queue and rare states of a connection, as one bit set each.
//!
//! All features that a queue or connection does not use cost a message a single test of this word;
//! the work for a used feature stands out of line. A bit may stay set after a part has become
//! empty, but is never missing: checking builds compare a queue's word with its parts.

mod queue;
mod connection;

pub(crate) use connection::ConnectionFeatures;
pub(crate) use queue::QueueFeatures;
