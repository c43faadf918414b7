//! Sockets: accepting, securing, reading and writing them, and closing those that stop reading.

pub(crate) mod listener;
pub(crate) mod connection;
mod stage;
mod preface;
pub(crate) mod socket;
pub(crate) mod stalled;
