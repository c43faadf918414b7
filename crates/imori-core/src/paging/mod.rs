//! Paging, for queues that are longer than their memory: writing pages, reading them, and restoring them
//! after a restart.
//!
//! These are methods of [`Queue`](crate::queue::Queue) that request work from the pager and take its answers.
//! Nothing here reads or writes a file.

mod stream;
mod spill;
mod delayed;
mod journal;
mod restore;
mod draft;
#[cfg(test)]
mod test_disk;

pub(crate) use delayed::FoundDelayed;
pub use draft::{PageDraft, PageWork, Tally};
pub(crate) use restore::{FoundPage, RestoredPart};
