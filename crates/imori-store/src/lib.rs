//! The journal: records that are on disk before anybody is told so.
//!
//! Reading down follows a record from who appends it to the device, and back after a crash.
//! Beside it stand the segments, where pages of entries outlive journal files, the folder that is a
//! store, and the definitions, a checkpoint of what was declared.
//! What is absent: queues, which stand on it, and any policy of who has to wait for a record.

pub mod committer;
pub mod open;
pub mod recover;
pub mod messages;
mod damage;
pub mod report;
mod read_files;
mod chain;
mod scan;
mod window;
pub mod walk;
pub mod journal;
pub mod intake;
pub mod disk_room;
pub mod pool;
pub mod segment;
pub mod space;
pub mod folder;
pub mod damage_note;
mod folder_lock;
pub mod definitions;
mod definition_rows;
mod definitions_file;
mod definitions_error;
mod definitions_damage;
pub mod settings;
pub mod batch;
pub mod record;
pub mod file_header;
pub mod run_mark;
pub mod identity;
mod replace;
pub mod seal;
mod planted;
pub mod lsn;
pub mod read_only_disk;
pub mod sim_disk;
pub mod disk;
pub mod whole_file;
pub mod limits;
#[cfg(test)]
mod written;
#[cfg(test)]
mod faltering;
#[cfg(test)]
mod scarce;
#[cfg(test)]
mod crash;
