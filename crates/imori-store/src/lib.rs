//! The journal: records that are on disk before anybody is told so.
//!
//! Reading down follows a record from who appends it to the device, and back after a crash.
//! What is absent: queues, segments and metadata, which will stand on it, and any policy of
//! who has to wait for a record. The broker does not use this crate yet.

pub mod committer;
pub mod open;
pub mod recover;
pub mod report;
mod scan;
pub mod journal;
pub mod pool;
pub mod segment;
pub mod settings;
pub mod batch;
pub mod record;
pub mod file_header;
pub mod seal;
mod planted;
pub mod lsn;
pub mod disk;
pub mod limits;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod sim_disk;
