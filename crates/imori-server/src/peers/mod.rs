//! The clients of sockets: their facts, how many may connect, and how often the log tells of those refused.

pub(crate) mod sums;
pub(crate) mod client;
pub(crate) mod admission;
pub(crate) mod log_limit;
pub(crate) mod stranger;
pub(crate) mod proxy;
