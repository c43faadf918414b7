//! Prepares what a broker needs before its first connection, from its configuration.

pub(crate) mod prepare;
pub(crate) mod start_error;
pub(crate) mod small_disk;
mod memory_limit;
