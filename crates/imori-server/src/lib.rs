//! The broker's runtime: cells, sockets, timers, limits.

mod server;
pub mod config;

pub use server::{Listener, ServeError, Server, StartError, StopHandle};
