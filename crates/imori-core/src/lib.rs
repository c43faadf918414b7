//! Routing, queues, subscriptions and inboxes as deterministic values.
//!
//! Nothing here blocks, reads a clock, touches a file or a socket, spawns or logs.
//! Time and randomness arrive as arguments, so a run can be repeated from its inputs.

pub mod route;
pub mod message;
pub mod name;
pub mod id;
pub mod time;
pub mod limits;
