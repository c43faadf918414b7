//! The HTTP gateway: routes turn requests into messages, and scripts in Ruby do what a route cannot say.

#![allow(clippy::result_large_err, reason = "the other side is mostly a response too, and as large")]

#[cfg(test)]
mod script_tests;
mod gateway;
mod files_watch;
mod workers;
mod serving;
mod actions;
mod deliver;
mod worker;
mod asking;
mod callers;
mod upstream;
mod chosen_certificates;
mod request_body;
mod facts;
mod shared;
mod respond;
mod local;
mod scripts;
mod exchange;
mod outgoing;
mod timer;
mod hop_by_hop;
mod routes;
mod lock;
mod limits;

pub use gateway::{Gateway, GatewayError, Routes};
pub use routes::Problems;
