//! The data folder: which store it is, who has it, how the last process ended, and which damage was found.

mod folder;
mod folder_lock;
pub mod damage_note;
pub mod run_mark;
pub mod identity;
mod replace;

pub use self::folder::{FolderError, FolderLook, JOURNAL, SEGMENTS, StoreFolder};
