//! The store on the simulated disk: segments, and a journal whose threads are steps that the
//! scheduler picks.
//!
//! Nothing here knows the broker: records go in, progress comes out, and the disk may fail in
//! between.

mod store;
mod log;
mod definitions;
mod device;

pub(crate) use definitions::Definitions;
pub(crate) use device::{Device, DeviceFile};
pub(crate) use log::{Log, Step};
pub(crate) use store::{OpenedStore, Store, last_checkpoint};
