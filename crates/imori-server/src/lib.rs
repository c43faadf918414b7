//! The broker's runtime: cells, sockets, timers, limits.

mod server;
mod listener;
mod thread;
mod connection;
mod flush;
mod stalled;
mod cell;
mod settings;
mod shared;
mod counters;
mod admission;
mod complaints;
mod load;
mod signal;
mod slots;
mod clock;
mod memory_limit;
mod limits;
pub mod config;

pub use server::{Listener, ServeError, Server, StartError, StopHandle};
