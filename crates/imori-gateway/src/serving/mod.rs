//! The way of a request: from its connection over its route to its response.

mod connection;
mod handshake;
mod answer;
mod pipeline;
mod filters;
mod access;
mod counted;
mod run;
mod opening;
mod script_services;
mod origins;

pub(crate) use connection::serve;
pub(crate) use opening::{close_scripts, open_scripts};
pub(crate) use pipeline::respond_to_script;
