//! Stalls of the broker's own: what is late, how late, and what is known of why.
//!
//! Reading down: the last of them, what one is, how its cause is judged, and where the evidence comes from.

mod stalls;
mod judge;
mod host;

pub(crate) use host::{Device, look_at_thread, others_that_wait, pressure};
pub(crate) use judge::{Cause, Evidence, Seen, judge_cell, judge_flush};
pub(crate) use stalls::{Stall, Stalls, Step, What};
