//! The store's journal on the simulated disk, its threads replaced by steps that the scheduler chooses.
//!
//! What stands here knows no broker: records in, progress out, faults of the disk on the way.

mod log;
mod definitions;
mod holdings;
mod device;

pub(crate) use definitions::Definitions;
pub(crate) use device::Device;
pub(crate) use log::{Log, Step};
