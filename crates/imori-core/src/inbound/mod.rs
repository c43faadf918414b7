//! The contract between a protocol's connection and the task that runs it.
//!
//! A protocol's crate implements [`Inbound`] for its connection; the server calls nothing else of it.

mod inbound;

pub use inbound::Inbound;
