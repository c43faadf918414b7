//! State of a cell that other threads read: counters, pulse, load and completed turns.

pub(crate) mod internal_counts;
pub(crate) mod counters;
pub(crate) mod histogram;
pub(crate) mod pulse;
pub(crate) mod load;
pub(crate) mod spin;
pub(crate) mod turn_counter;
