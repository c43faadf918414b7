//! The broker as it changes: one sampler for all readers, a history of its samples, and lists of which readers get what
//! changed.
//!
//! The sampler takes a sample a second from counters that exist anyway. The connections and queues, of which there may
//! be a hundred thousand, are passed over once for all readers: as often as the budget of the pass allows, and each
//! second only while a reader follows a list. Nothing here is on the way of a message.

pub(crate) mod sampler;
pub(crate) mod pass;
pub(crate) mod live_state;
mod totals;
pub(crate) mod connection_rows;
pub(crate) mod queue_rows;
pub(crate) mod rows;
pub(crate) mod history;
pub(crate) mod counts;
pub(crate) mod sample;
pub(crate) mod quantiles;

pub(crate) use connection_rows::COLUMNS as CONNECTION_COLUMNS;
pub(crate) use history::{Window, Windows};
pub(crate) use live_state::{Follower, Latest, Live, Topic, Topics};
pub(crate) use queue_rows::COLUMNS as QUEUE_COLUMNS;
pub(crate) use rows::{Chunk, Position};
pub(crate) use sampler::start;
