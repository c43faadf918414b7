//! Policies: settings that an operator gives to queues and exchanges by their names.
//!
//! One policy and one operator policy act on an object at a time, of each list the first that matches. They are
//! compiled here; how they are written and kept is not known.

mod policies;
mod matched;
mod policy;
mod settings;

pub use matched::{Matched, Source};
pub use policies::Policies;
pub use policy::{AppliesTo, Policy, QueueKind};
pub use settings::{DeliveryLimit, Overflow, PolicySettings};
