//! The store on the simulated disk: the journal, whose threads are steps that the scheduler chooses, and segments.
//!
//! Nothing here knows the broker: records in, progress out, faults of the disk on the way.

mod store;
mod log;
mod definitions;
mod device;

pub(crate) use definitions::Definitions;
pub(crate) use device::{Device, DeviceFile};
pub(crate) use log::{Log, Step};
pub(crate) use store::{Found, Store, last_checkpoint};
