//! Messages that leave once they are settled.
//!
//! A queue is plain data: it is handed messages, consumers, outcomes and the time, and
//! answers with what has to be done. Who locks it and who writes to a socket is not its concern.

mod pressing;
mod delayed_pages;
mod journal_pages;
mod paging;
mod queue;
mod settings;
mod consumers;
mod delayed;
mod dedup;
mod press;
mod ready;
mod level;
mod run;
mod draft;
mod entry;
mod pages;
mod in_journal;
mod position;
mod ranges;
mod unspilled;
#[cfg(test)]
mod test_disk;

pub use consumers::ConsumeRefusal;
pub use dedup::Dedup;
pub(crate) use delayed_pages::FoundDelayed;
pub use draft::{PageDraft, PageWork, Tally};
pub use entry::Entry;
pub(crate) use in_journal::InJournal;
pub use in_journal::JournalRead;
pub(crate) use pages::delayed_position;
pub use pages::{GonePage, PageFacts, PageId, PagePlace, PageSource};
pub(crate) use paging::{Found, FoundPage};
pub(crate) use position::first_position;
pub use queue::{Arrival, Dead, Durability, Effects, Published, Queue, QueueFull};
pub use ranges::Ranges;
pub use settings::{DeadLetter, Overflow, QueueSettings};
