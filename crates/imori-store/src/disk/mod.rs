//! The disk as this crate sees it: the real one, one that changes nothing, and one in memory that fails on demand.

pub mod sim_disk;
mod read_only_disk;
mod disk;
pub(crate) mod whole_file;

pub use self::disk::{Disk, DiskFile, RealDisk, is_scarce};
pub(crate) use self::disk::{read_all, read_up_to, write_all};
pub use self::read_only_disk::ReadOnlyDisk;
pub use self::whole_file::ReadFrom;
