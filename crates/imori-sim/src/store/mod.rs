//! The threads of the store that know the broker, and the recovery that a start goes through.

mod host;
mod thread;
mod restore;
mod pending_dead_letters;

pub(crate) use restore::restore;
pub(crate) use thread::StoreThread;
