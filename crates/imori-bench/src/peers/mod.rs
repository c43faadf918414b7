//! The brokers on this machine: how each is found, started, guarded and ended.

pub(crate) mod running;
pub(crate) mod recipe;
pub(crate) mod found;
pub(crate) mod peer;
pub(crate) mod ourselves;
pub(crate) mod guard;
