//! Sockets: how they are accepted, secured, read and written, and which of them are cut for reading nothing.

pub(crate) mod listener;
pub(crate) mod connection;
mod stage;
mod socket;
pub(crate) mod stalled;
