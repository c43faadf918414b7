//! Messages that leave once they are settled.
//!
//! A queue is plain data: it is handed messages, consumers, outcomes and the time, and
//! answers with what has to be done. Who locks it and who writes to a socket is not its concern.

mod pressing;
mod get;
mod publish;
mod ripen;
mod deliver;
mod delayed_pages;
mod journal_pages;
mod paging;
mod linger;
mod purge;
mod leave;
mod queue;
mod lingering;
mod settings;
mod consumers;
mod delayed;
mod dedup;
mod press;
mod ready;
mod priority_lane;
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
#[cfg(test)]
mod test_stage;

pub use consumers::ConsumeRefusal;
pub use dedup::Dedup;
pub(crate) use delayed_pages::FoundDelayed;
pub use draft::{PageDraft, PageWork, Tally};
pub use entry::Entry;
pub use get::Got;
pub(crate) use in_journal::InJournal;
pub use in_journal::JournalRead;
pub use leave::{DeadLetter, Effects};
pub(crate) use pages::delayed_position;
pub use pages::{GonePage, PageFacts, PageId, PagePlace, PageSource, PurgedPage};
pub(crate) use paging::{Found, FoundPage};
pub(crate) use position::first_position;
pub use publish::{Arrival, Published, QueueFull};
pub use queue::{Durability, Queue};
pub use ranges::Ranges;
pub use settings::{DeadLetterTarget, Overflow, QueueSettings};
#[cfg(test)]
pub(crate) use test_stage::entry;
