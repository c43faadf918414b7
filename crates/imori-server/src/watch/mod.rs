//! The thread that watches for late flushes, late cells and a full disk.

mod watch;
mod lateness;
mod space;

pub(crate) use space::SpaceWatch;
pub(crate) use watch::keep_watch;
