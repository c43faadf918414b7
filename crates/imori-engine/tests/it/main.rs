//! The parts of the engine, and the engine against real processes, folders and packs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test whose premises fail has failed")]

mod access;
mod api;
mod notifications;
mod executions;
mod policies;
mod rules;
mod sensors;
mod ssh;
mod aliases;
mod configuration;
mod document;
mod source;
mod watch;
mod packs;
mod install;
mod environment;
mod environment_copy;
mod command;
mod python;
mod python_ends;
mod python_files;
mod conversation;
mod cipher;
mod keyczar;
mod store;
mod store_server;
mod retention;
mod postgres;
mod pack;
mod trial;
