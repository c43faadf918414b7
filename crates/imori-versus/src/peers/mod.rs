//! The peers on this machine: finds, starts, guards and ends them.

pub(crate) mod running;
pub(crate) mod recipe;
pub(crate) mod found;
pub(crate) mod peer;
pub(crate) mod ourselves;
pub(crate) mod guard;
