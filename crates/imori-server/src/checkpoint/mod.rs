//! Moves the needed content of old journal files to segments, so that the files can be reused.

pub(crate) mod checkpointer;
mod spill;
pub(crate) mod host;
