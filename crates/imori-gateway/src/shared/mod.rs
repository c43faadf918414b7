//! What all workers share.

mod shared;
mod access_log;
pub(crate) mod feeds;
mod pulled;
pub(crate) mod script_faults;

pub(crate) use feeds::{FeedKey, Reader, event_text};
pub(crate) use pulled::Pull;
pub(crate) use shared::Shared;
