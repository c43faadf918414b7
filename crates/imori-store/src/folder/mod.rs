//! The data folder: its id, its lock, the end of the last process, and reported damage.

mod folder;
mod folder_lock;
pub mod damage_note;
pub mod run_mark;
pub mod identity;
mod replace;

pub use self::folder::{FolderError, FolderInspection, JOURNAL, SEGMENTS, StoreFolder};
