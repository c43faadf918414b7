//! The store: a journal that makes records durable before they are confirmed, and its checkpoints.
//!
//! The modules below follow a record from the appender to the device, and back after a crash.
//! Segments keep pages of entries for longer than journal files. The folder holds one store.
//! Definitions are a checkpoint of declared names. Deliberately absent: queues, which build on the
//! store, and the decision which clients wait for a record.

pub mod journal;
pub mod recovery;
pub mod segment;
pub mod manifest;
pub mod folder;
pub mod definitions;
pub mod settings;
pub mod records;
pub mod seal;
mod cache;
mod planted;
pub mod lsn;
pub mod disk;
pub mod limits;
