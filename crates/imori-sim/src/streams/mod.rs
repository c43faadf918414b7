//! Streams in a run: clients that speak NATS, what they know of the streams, and checks of that.
//!
//! A run with streams has no other clients. Everything that clients know is in the [`Ledger`], across the lives of the
//! broker and of the streams.

mod actions;
mod answers;
mod deliveries;
mod rest;
mod image;
mod client;
mod removal;
mod ledger;
mod records;

pub(crate) use client::{Role, StreamClient};
pub(crate) use image::check_stream_image;
pub(crate) use ledger::Ledger;
pub(crate) use rest::{check_streams_at_end, check_streams_at_rest};
