//! A configuration that takes the place of the one in force while the broker runs: whole, or not at all.

mod reload;
mod listening;

pub use reload::{ReloadError, Reloader};

pub(crate) use listening::{Bound, Listening, bind_all};
