//! The parts of a queue and the states of a connection that few have and that a message has to mind, as one word each.
//!
//! The rule: a feature that a queue or a connection does not use costs a message one test of this word, together with
//! all other features that are unused. The work for it stands out of line. A bit may stay behind where a part is empty
//! again, but is never missing: builds that check hold a queue's word against its parts.

mod queue;
mod connection;

pub(crate) use connection::ConnectionFeatures;
pub(crate) use queue::QueueFeatures;
