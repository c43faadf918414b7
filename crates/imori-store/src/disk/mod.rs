//! The disk below this crate: the real one, a read-only view, and a simulated one that fails on
//! demand.

pub mod sim_disk;
mod read_only_disk;
mod disk;
pub(crate) mod whole_file;
#[cfg(test)]
pub(crate) mod crash_runs;

pub use self::disk::{Disk, DiskFile, RealDisk, is_out_of_resources};
pub(crate) use self::disk::{is_out_of_descriptors, read_all, read_up_to, write_all};
pub use self::read_only_disk::ReadOnlyDisk;
pub use self::whole_file::ReadFrom;
