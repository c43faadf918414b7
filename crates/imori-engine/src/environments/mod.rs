//! Environments: a Python environment for each pack.

pub mod environment;

mod copy;

pub mod command;
