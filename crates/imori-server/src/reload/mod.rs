//! Replaces the configuration of a running broker as a whole, or not at all.

mod reload;
mod listening;
mod definitions_file;

pub use reload::{ReloadError, Reloader};

pub(crate) use definitions_file::take_over;
pub(crate) use listening::{Bound, HttpServices, Listening, bind_all};
