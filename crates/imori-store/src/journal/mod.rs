//! Writing the journal: from who appends a record to the device.
//!
//! The committer is the only thread here; all else are values that say what is to be done next, so that the
//! simulator can do it in any order. Reading a journal back is `recovery/`.

mod committer;
mod open;
mod journal;
mod intake;
mod disk_room;
mod pool;
mod space;
#[cfg(test)]
pub(crate) mod crash;
#[cfg(test)]
mod scarce;

pub use self::committer::{Commit, Committer, Listener};
pub use self::disk_room::DiskRoom;
pub use self::intake::{Admitted, AppendError, Intake, NewRecord};
pub use self::journal::{Batch, Journal, Released};
pub use self::open::{OpenError, Opened, OpenedApart, open, open_apart};
pub use self::pool::{Job, Made, Pool};
pub use self::space::{Space, Watermark};
