//! Clients inside the process, on any thread: what the broker itself says and hears.
//!
//! An [`InternalClient`] sends commands to a task on a cell, which runs them on an internal client of the core. The
//! client's outbound half is flushed into a [`Pipe`](crate::pipe::Pipe) as others' are flushed into sockets, so that every limit holds
//! for it.

mod ping;
mod connect;
mod task;
mod client;

pub use client::{InternalClient, InternalError};
pub use connect::InternalClients;
pub(crate) use ping::{start_responder, start_responders};

#[cfg(test)]
mod tests;
