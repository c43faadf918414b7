//! A start from disk: definitions, journal records and pages become a topology and its queues.

mod restore;
mod lost;
mod pages;
mod settled;

pub use restore::{Awakening, Leaving, Restore, Restored};
