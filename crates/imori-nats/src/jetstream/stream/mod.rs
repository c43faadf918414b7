//! Streams: their configuration, what may stand in it, and what their answers tell.

pub mod info;
pub mod check;
pub mod config;
