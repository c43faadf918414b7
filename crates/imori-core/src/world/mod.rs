//! The environment of the broker's verbs: locks, clock, counters and the journal; users, rights and limits.

mod world;
mod access;
mod quotas;
mod stream_services;
mod reports;
mod observer;
mod transfer;

pub use access::{Access, Change};
pub use observer::{Observer, Sent};
pub use quotas::Quotas;
pub use reports::{Counter, Latency, StreamRequests};
pub use stream_services::StreamServices;
pub use transfer::{StreamTransfer, TransferDirection};
pub use world::World;
