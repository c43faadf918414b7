//! Performs the commands of a client: each file reads one kind of frame and calls the broker's
//! verbs.
//!
//! The connection's state machine decides whether a frame may be performed now; this module does
//! not.

pub(crate) mod login;
pub(crate) mod commit;
pub(crate) mod settle;
pub(crate) mod subscribe;
pub(crate) mod repeat;
pub(crate) mod send;
mod send_headers;
pub(crate) mod foreign;
pub(crate) mod stream;
mod arguments;
