//! The thread that watches the broker from beside: late flushes, late cells, the space on the disk.

mod watch;
mod lateness;
mod space;

pub(crate) use space::SpaceWatch;
pub(crate) use watch::keep_watch;
