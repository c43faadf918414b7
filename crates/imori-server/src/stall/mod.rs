//! Stalls of the broker's own: what is late, how late, and what is known of why; and whatever else operators follow.
//!
//! Reading down: the last happenings of all kinds, the last stalls, what one is, how its cause is judged, and where the
//! evidence comes from.

pub(crate) mod happenings;
mod stalls;
mod judge;
mod host;

pub(crate) use host::{Device, others_that_wait, pressure, sample_thread};
pub(crate) use judge::{Cause, Evidence, Sample, judge_cell, judge_flush};
pub(crate) use stalls::{LateWork, Stall, Stalls, Step};
