//! The contract between a protocol's connection and the task that runs it.
//!
//! A protocol's crate implements [`Inbound`] for its connection; the server calls nothing else of it. The work that
//! every protocol has is done here once: the loop over frames, parking and replay, pauses, the login's time, and
//! publishing frames whose heads repeat.

mod inbound;
mod keepalive;
mod intake;
mod parking;
mod repeat;
mod unread;

pub use inbound::{Inbound, Performed, Phase, Taken};
pub use intake::{Intake, Reading};
pub use keepalive::{Due, Keepalive};
pub use parking::Parking;
pub use repeat::{Repeat, Repeated, RepeatedHead};
pub use unread::Unread;
