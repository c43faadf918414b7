//! The writing side of the journal, from an appended record to the device.
//!
//! Only the committer has threads. All other types are values that tell the next step, so that the
//! simulator can take steps in any order. `recovery/` reads a journal back.

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
mod full_disk;

pub use self::committer::{Commit, Committer, Listener};
pub use self::disk_room::DiskRoom;
pub use self::intake::{Admitted, AppendError, Intake, NewRecord};
pub use self::journal::{Batch, Journal, Released};
pub use self::open::{OpenError, Opened, OpenedApart, open, open_apart};
pub use self::pool::{Job, JobOutcome, Pool};
pub use self::space::{Space, Watermark};
