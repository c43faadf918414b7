//! Stalls of the broker itself, with duration and likely cause, and other events for operators.
//!
//! From top to bottom: recent events, recent stalls, how a cause is derived, and the statistics it is derived from.

pub(crate) mod happenings;
mod stalls;
mod judge;
mod host;

pub use happenings::{Happening, Heard};
pub use host::Pressure;
pub(crate) use host::{Device, others_that_wait, pressure, sample_thread};
pub use judge::{Cause, Evidence};
pub(crate) use judge::{Sample, judge_cell, judge_flush};
pub(crate) use stalls::Stalls;
pub use stalls::{LateWork, Stall, Step};
