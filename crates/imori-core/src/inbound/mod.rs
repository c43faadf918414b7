//! The contract between a protocol's connection and the task that runs it.
//!
//! A protocol crate implements [`Inbound`] and [`Accept`] for its connection; the server calls
//! nothing else of it. Work common to all protocols is done here: the loop over frames, parking and
//! replay, pauses, the login deadline, and publishing frames with repeated headers.

mod deadline;
mod renew;
mod wait;
mod inbound;
mod keepalive;
mod intake;
mod parking;
mod repeat;
mod unread;

pub use deadline::tick;
pub use inbound::{Accept, Inbound, Performed, Phase, Taken};
pub use intake::{Intake, Reading};
pub use keepalive::{Due, Keepalive};
pub use parking::Parking;
pub use renew::{renew, renew_token};
pub use repeat::{Repeat, Repeated, RepeatedHead};
pub use unread::Unread;
pub use wait::{disconnect, park, verified};
