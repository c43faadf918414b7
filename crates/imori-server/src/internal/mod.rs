//! Clients inside the process, usable from any thread.
//!
//! An [`InternalClient`] sends commands to a task on a cell, which runs them on an internal client of the core. The
//! client's outbound half is flushed into a [`Pipe`](crate::pipe::Pipe) as others are flushed into sockets, so every
//! limit applies to it. A body is copied into the pipe and out of it. One slow subscription holds up the others of the
//! same client; a caller that cannot accept that makes two clients.

mod ping;
mod connect;
mod task;
mod client;

pub use client::{InternalClient, InternalError};
pub use connect::InternalClients;
pub(crate) use ping::{start_responder, start_responders};

#[cfg(test)]
mod tests;
