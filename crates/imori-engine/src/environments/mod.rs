//! Environments: a Python environment for each pack.

pub mod environment;

pub mod command;
