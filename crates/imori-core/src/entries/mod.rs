//! The messages of a queue, in memory and on disk, as plain data.
//!
//! An entry is a message in one queue. Entries that do not fit into memory are in pages; the queue knows
//! where each page is and what it holds. Taking out messages and writing pages is done elsewhere.

mod delayed;
mod ready;
mod priority_lane;
mod packed_pages;
mod page_keep;
mod page_part;
mod run;
mod entry;
mod pages;
mod journal_page;
mod position;
mod ranges;
mod live_records;

pub(crate) use delayed::{Delayed, Stub, TakenOut};
pub use entry::Entry;
pub use journal_page::JournalRead;
pub(crate) use journal_page::{Gathered, InJournal};
pub(crate) use live_records::LiveRecords;
pub(crate) use page_keep::PageKeep;
pub(crate) use page_part::PagePart;
pub(crate) use pages::{DuePlace, Page, Pages, delayed_position};
pub use pages::{GonePage, PageFacts, PageId, PagePlace, PageSource};
pub(crate) use position::{first_position, restored_position};
pub(crate) use priority_lane::{Front, Looked, Part, Stand};
pub use ranges::Ranges;
pub(crate) use ready::Ready;
pub(crate) use run::Run;
