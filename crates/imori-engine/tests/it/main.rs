//! The engine against real processes, folders and packs.

#![allow(clippy::unwrap_used, reason = "a test whose premises fail has failed")]

mod configuration;
mod environment;
mod install;
mod pack;
mod packs;
mod python;
mod python_ends;
