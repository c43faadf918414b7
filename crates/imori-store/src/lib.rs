//! The store: a journal of records that are on disk before anybody is told so, and its checkpoints.
//!
//! Reading down follows a record from the appender to the device, and back after a crash. Segments keep pages
//! of entries longer than journal files. The folder holds one store. Definitions are a checkpoint of declared
//! names. Absent: queues, which stand on the store, and the decision who waits for a record.

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
