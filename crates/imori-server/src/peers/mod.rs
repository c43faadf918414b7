//! Who is connected, how many may be, and what is told of those who are refused.

pub(crate) mod client;
pub(crate) mod admission;
pub(crate) mod log_limit;
