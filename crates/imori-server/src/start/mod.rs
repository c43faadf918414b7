//! From the configuration to all that a broker needs before its first connection.

pub(crate) mod prepare;
pub(crate) mod start_error;
pub(crate) mod small_disk;
mod memory_limit;
