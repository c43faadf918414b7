//! The state that outlives the broker. It is opened before any client is served, and every cell appends to it.
//!
//! The modules follow a record: a cell appends it, the journal reports progress, cells release the answers that
//! waited for it. A failing disk ends the broker.

mod open;
mod declared;
mod found_pages;
mod checkpointer;
mod pager;
mod page_jobs;
mod page_facts;
mod room;
mod journal;
mod settle_mark;
mod definitions;
mod damages;
mod failure;
mod store_error;
pub(crate) mod rate_limited_log;
mod commits;
mod progress;

pub use checkpointer::Checkpointer;
pub(crate) use commits::Commits;
pub use commits::{BOUNDS_US as COMMIT_BOUNDS_US, Counts};
pub(crate) use damages::Damages;
pub(crate) use definitions::DefinitionRows;
pub(crate) use journal::Journal;
pub(crate) use open::{OpenedStore, Opening, open};
pub use page_facts::{manifest_mark, page_facts};
pub use page_jobs::{
    Job, PageHost, PageNews, PageRequest, discard_pages, do_job, page_request, read_journal, write_drafts,
};
pub(crate) use pager::Pager;
pub(crate) use progress::Waiters;
pub use room::{Purpose, Room};
pub use store_error::StoreError;
