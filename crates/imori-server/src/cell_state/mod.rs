//! The parts of a cell that other threads see: counters, pulse, load, and whether its turns have ended.

pub(crate) mod counters;
pub(crate) mod histogram;
pub(crate) mod pulse;
pub(crate) mod load;
pub(crate) mod spin;
pub(crate) mod turn_counter;
