//! What outlives the broker: opened before anybody is served, appended to by every cell, and told of by the
//! journal's own threads.
//!
//! Reading down follows a record: a cell appends it, the journal's progress is told, cells release what
//! waited for it. A failing disk ends the broker.

mod open;
mod keeper;
mod pager;
mod room;
mod seldom;
mod journal;
mod definitions;
mod failure;
mod commits;
mod progress;

pub(crate) use commits::{BOUNDS_US, Commits};
pub(crate) use journal::Journal;
pub(crate) use keeper::Keeper;
pub use open::StoreError;
pub(crate) use open::{OpenedStore, Opening, open};
pub(crate) use pager::{Asked, Pager};
pub(crate) use progress::Waiters;
pub(crate) use room::Purpose;
