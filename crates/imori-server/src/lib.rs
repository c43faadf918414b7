//! The broker's runtime: cells, sockets, timers, limits.

pub mod config;
