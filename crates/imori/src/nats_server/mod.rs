//! Reads the users, accounts and permissions of a nats-server configuration.
//!
//! The syntax is nats-server's own: JSON with optional quotes, commas and colons, plus comments,
//! variables, sizes with units and included files. Every part is bounded, because the file may come
//! from anywhere.

pub(crate) mod definitions;
pub(crate) mod read;
pub(crate) mod scalar;
pub(crate) mod value;

pub(crate) use definitions::{Converted, definitions};
pub(crate) use read::read;
