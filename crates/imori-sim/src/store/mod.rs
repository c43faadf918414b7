//! The store threads that call into the broker, and the recovery at each start.

mod host;
mod thread;
mod restore;
mod pending_dead_letters;
mod restart_bugs;

pub(crate) use restore::restore;
pub(crate) use thread::StoreThread;
