//! Stalls of the broker itself, with duration and likely cause, and other events for operators.
//!
//! From top to bottom: recent events, recent stalls, how a cause is derived, and the statistics it is derived from.

pub(crate) mod happenings;
mod stalls;
mod judge;
mod host;

pub(crate) use host::{Device, others_that_wait, pressure, sample_thread};
pub(crate) use judge::{Cause, Evidence, Sample, judge_cell, judge_flush};
pub(crate) use stalls::{LateWork, Stall, Stalls, Step};
