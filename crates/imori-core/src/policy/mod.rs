//! Policies: settings that an operator gives to queues and exchanges by their names.
//!
//! One policy and one operator policy apply to an object at a time, the first match in each list.
//! They are compiled here; this module does not know how they are written or stored.

mod policies;
mod matched;
mod policy;
mod settings;

pub use matched::{Matched, Source};
pub use policies::Policies;
pub use policy::{AppliesTo, Policy, QueueKind};
pub use settings::{DeliveryLimit, Overflow, PolicySettings};
