//! What is seen beside the load: what broker and client cost.

pub(crate) mod cost;
pub(crate) mod process;
