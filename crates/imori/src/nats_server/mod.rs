//! The configuration of a nats-server, as far as users, accounts and rights are in it.
//!
//! The syntax is nats-server's own: JSON whose quotes, commas and colons may be left out, with comments, variables,
//! sizes with units and included files. Everything is bounded, as the file may come from anywhere.

mod definitions;
mod read;
mod scalar;
mod value;

pub(crate) use definitions::{Converted, definitions};
pub(crate) use read::read;
