//! The environment of the broker's verbs: locks, clock, counters and the journal; users, rights and limits.

mod world;
mod access;
mod reports;
mod observer;
mod transfer;

pub use access::{Access, Change};
pub use observer::{Observer, Sent};
pub use reports::{Counter, Latency, StreamRequests};
pub use transfer::{StreamTransfer, TransferDirection};
pub use world::World;
