//! Clients inside the process, usable from any thread.
//!
//! An [`InternalClient`] has a connection like any other client: an inbound half of the core, run by the ordinary task.
//! It is therefore parked, throttled, cut and detached like a network client, under the same alarms and limits. Its
//! transport is a [`ClientPipe`](crate::pipe::ClientPipe) of typed commands and messages. A live subscription has a
//! connection of its own, so that a slow receiver holds up nothing else.

mod ping;
mod connect;
mod client;
mod subscription;
mod start;
mod handle;
mod connection;
mod error;

pub use client::{ConsumeOptions, DeclaredQueue, InternalClient, SubscribeOptions};
pub use connect::{ClientOptions, InternalClients};
pub use error::InternalError;
pub use handle::Published;
pub(crate) use ping::{start_responder, start_responders};
pub use subscription::Subscription;

#[cfg(test)]
mod tests;
