//! Clients inside the process, usable from any thread.
//!
//! An [`InternalClient`] has a connection like every other client: an inbound half of the core, run by the ordinary
//! task, so that parking, throttling, alarms, rates, renewals, cuts and detaching are the ordinary ones. Its transport
//! is a [`ClientPipe`](crate::pipe::ClientPipe) of typed commands and messages. A live subscription has a connection of
//! its own, so that one whose receiver is behind holds up nothing else.

mod ping;
mod client;
mod subscription;
mod connect;
mod connection;
mod error;

pub use client::{ConsumeOptions, DeclaredQueue, InternalClient, Published, SubscribeOptions};
pub use connect::{ClientOptions, InternalClients};
pub use error::InternalError;
pub(crate) use ping::{start_responder, start_responders};
pub use subscription::Subscription;

#[cfg(test)]
mod tests;
