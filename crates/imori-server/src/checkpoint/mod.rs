//! The checkpointer lets files of the journal be used again: it moves what they still hold into segments.

pub(crate) mod checkpointer;
mod spill;
pub(crate) mod host;
