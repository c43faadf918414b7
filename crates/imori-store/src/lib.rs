//! The journal: records that are on disk before anybody is told so.
//!
//! Reading down follows a record from who appends it to the device, and back after a crash.
//! Beside it stand the segments, where pages of entries outlive journal files, the folder that is a
//! store, and the definitions, a checkpoint of what was declared.
//! What is absent: queues, which stand on it, and any policy of who has to wait for a record.

pub mod journal;
pub mod recovery;
pub mod segment;
pub mod folder;
pub mod definitions;
pub mod settings;
pub mod records;
pub mod seal;
mod planted;
pub mod lsn;
pub mod disk;
pub mod limits;
