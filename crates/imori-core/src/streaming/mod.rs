//! Streams as queues: how messages come into a stream, leave it, and get to its readers.
//!
//! These are methods of [`Queue`](crate::queue::Queue), whose ready messages are those of the stream. A message's
//! sequence number is also its position, so that pages keep it; everything about messages on disk goes by it.

mod append;
mod admit;
mod consumers;
mod cursors;
mod consume;
mod step;
mod requests;
mod gets;
mod outlet;
mod expire;
mod remove;
mod records;
mod restore;
mod archive;
#[cfg(test)]
mod tests;

pub(crate) use outlet::{Outlet, Sent};
pub(crate) use restore::FoundStream;
