//! The environment of the broker's verbs: locks, clock, counters and the journal; users, rights and limits.

mod world;
mod access;
mod reports;
mod transfer;

pub use access::{Access, Change};
pub use reports::{Counter, Latency, Sent, StreamRequests};
pub use transfer::{StreamTransfer, TransferDirection};
pub use world::World;
