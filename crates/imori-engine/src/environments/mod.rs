//! Environments: a Python environment for each pack.

pub mod environment;

pub(crate) mod copy;

pub mod command;
